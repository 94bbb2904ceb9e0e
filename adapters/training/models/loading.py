"""Load a model by name; this is the entry point `model` of the group `toolgym.policies`.

Names are checked before PyTorch is imported, since the import takes seconds. A name is a folder, a
model id on the hub, or the name of a published model (`adapters.training.models.published`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from adapters.training.models.chat_templates import ChatTemplate
from adapters.training.models.published import check_model
from toolgym.errors import ConfigurationError
from toolgym.long_work import reporting

if TYPE_CHECKING:
    from adapters.training.models.chat_policy import ChatModelPolicy


def loading_pytorch() -> AbstractContextManager[None]:
    """Return a context manager that tells the user that importing PyTorch takes a while."""
    return reporting("loading PyTorch")


def load(
    path_or_hub_id: str, *, seed: int = 0, chat_template: str | None = None, **options: Any
) -> ChatModelPolicy:
    """Load a policy from a checkpoint folder or from the Hugging Face hub.

    Args:
        path_or_hub_id: A folder with model and tokenizer, such as `runs/NAME/checkpoints/final`, a
            model id on the hub, or the name of a published model.
        seed: Seed of `ChatModelPolicy`.
        chat_template: `hermes`, or the path of a Jinja file. None keeps the tokenizer's template.
        options: Options of `ChatModelPolicy`: `temperature`, `max_new_tokens` and `batch`.

    Raises:
        ConfigurationError: If there is no such model, option or template, or the model has no
            template.
    """
    if unknown := options.keys() - {"temperature", "max_new_tokens", "batch"}:
        raise ConfigurationError(
            f"a model has no option {min(unknown)!r}: it has temperature, max_new_tokens, batch and"
            " chat_template. (A model on a server has others, such as max_tokens.)"
        )
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigurationError(f"{name} must be a number, got {value!r}.")
    check_model(path_or_hub_id)
    template = None if chat_template is None else ChatTemplate.named(chat_template)
    with loading_pytorch():
        from adapters.training.models.chat_policy import ChatModelPolicy, load_model
    pair = load_model(path_or_hub_id, chat_template=template)
    return ChatModelPolicy(*pair, name=path_or_hub_id, seed=seed, **options)
