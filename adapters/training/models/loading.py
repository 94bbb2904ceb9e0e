"""A model as a policy by its name: the entry point `model` of the group `toolgym.policies`.

Name and options are looked at before PyTorch is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapters.training.models.chat_templates import ChatTemplate
from adapters.training.models.places import check_model, loading_pytorch
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from adapters.training.models.chat_policy import ChatModelPolicy

_LEAST: Final[dict[str, float]] = {"temperature": 0.0, "max_new_tokens": 1, "batch": 1}
_OPTIONS: Final = (*_LEAST, "chat_template")


def load(path_or_hub_id: str, *, seed: int = 0, **options: Any) -> ChatModelPolicy:
    """A policy from a checkpoint folder or from the Hugging Face hub.

    Args:
        path_or_hub_id: A folder with model and tokenizer, such as `runs/NAME/checkpoints/final`,
            or a name on the hub.
        options: `temperature`, `max_new_tokens`, `batch`, `chat_template`, as for
            `ChatModelPolicy`.

    Raises:
        ConfigurationError: There is no such model, option or template, or the model has none.
    """
    for name, value in options.items():
        if name not in _OPTIONS:
            raise ConfigurationError(
                f"a model has no option {name!r}: it has {', '.join(_OPTIONS)}. (A model on a"
                " server has others, such as max_tokens.)"
            )
        if name == "chat_template":
            is_name = value is not None and not isinstance(value, ChatTemplate)
            options[name] = ChatTemplate.named(str(value)) if is_name else value
        elif isinstance(value, bool) or not isinstance(value, int | float) or value < _LEAST[name]:
            raise ConfigurationError(
                f"{name} must be a number from {_LEAST[name]:g}, got {value!r}."
            )
    check_model(path_or_hub_id)
    with loading_pytorch():
        from adapters.training.models.chat_policy import load as load_policy
    return load_policy(path_or_hub_id, seed=seed, **options)
