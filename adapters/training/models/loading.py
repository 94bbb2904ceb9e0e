"""Loading of a model by its name: the entry point `model` of the group `toolgym.policies`.

Loading PyTorch takes seconds, so names are checked here before it is imported. A name is a folder,
an id on the hub, or that of a published model (`adapters.training.models.published`).
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adapters.training.models.chat_templates import ChatTemplate
from adapters.training.models.published import MODELS, place_of
from toolgym.errors import ConfigurationError
from toolgym.long_work import reporting

if TYPE_CHECKING:
    from adapters.training.models.chat_policy import ChatModelPolicy

_HUB_ID: Final = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")


def loading_pytorch() -> AbstractContextManager[None]:
    """A context for the import of PyTorch, which shows that it takes a while."""
    return reporting("loading PyTorch")


def load(
    path_or_hub_id: str, *, seed: int = 0, chat_template: str | None = None, **options: Any
) -> ChatModelPolicy:
    """Load a policy from a checkpoint folder or from the Hugging Face hub.

    Args:
        path_or_hub_id: A folder with model and tokenizer, such as `runs/NAME/checkpoints/final`,
            an id on the hub, or the name of a published model.
        seed: Seed of `ChatModelPolicy`.
        chat_template: `hermes`, `chatml`, or the path of a Jinja file; None: the tokenizer's own.
        options: `temperature`, `max_new_tokens` and `batch` of `ChatModelPolicy`.

    Raises:
        ConfigurationError: There is no such model, option or template, or the model has none.
    """
    check_model(path_or_hub_id)
    template = None if chat_template is None else ChatTemplate.named(chat_template)
    if unknown := options.keys() - {"temperature", "max_new_tokens", "batch"}:
        raise ConfigurationError(
            f"a model has no option {min(unknown)!r}: it has temperature, max_new_tokens, batch and"
            " chat_template. (A model on a server has others, such as max_tokens.)"
        )
    with loading_pytorch():
        from adapters.training.models.chat_policy import ChatModelPolicy, load_model
    pair = load_model(path_or_hub_id, chat_template=template)
    return ChatModelPolicy(*pair, name=path_or_hub_id, seed=seed, **options)


def check_model(path_or_hub_id: str) -> None:
    """Check that a name is that of a model folder, or could be an id on the hub.

    Raises:
        ConfigurationError: It is neither, or is the name of a published model that was not
            downloaded; the message names the models in a folder that is not one itself.
    """
    place = Path(place_of(path_or_hub_id)).expanduser()
    if not place.is_dir():
        if place.exists() or path_or_hub_id[:1] in "./~" or not _HUB_ID.fullmatch(path_or_hub_id):
            raise ConfigurationError(
                f"There is no model folder {path_or_hub_id}; name one that has a config.json, such"
                " as runs/NAME/checkpoints/final, a model of the hub such as Qwen/Qwen3-0.6B, or"
                f" {' or '.join(MODELS)} (`toolgym models list`)."
            )
    elif not (place / "config.json").is_file() or not any(place.glob("tokenizer*")):
        files = sorted(place.glob("**/model.safetensors"))
        inside = ", ".join(str(file.parent.relative_to(place)) for file in files)
        raise ConfigurationError(
            f"{place} is no model folder: it needs config.json, weights and a tokenizer."
            + f" It holds the models {inside}: name one of them." * bool(inside)
        )
