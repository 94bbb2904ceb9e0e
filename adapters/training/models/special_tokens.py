"""Which tokens end a turn, which pads, how much a model can read, and which text is not control.

What a tool returns is data. `toolgym.sanitize` has broken what any known chat format takes for
control; the tokenizer's own control tokens are known to the tokenizer alone, which can be asked to
encode them as plain text wherever a message, and not the template, wrote them.
"""

from __future__ import annotations

from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from toolgym.env import ToolEnv

SANITIZED: dict[str, Any] = {"sanitize_control_tokens": True}
"""What `apply_chat_template` is given to encode control tokens in messages as plain text."""


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The tokens that end a turn: the tokenizer's and those of the generation config."""
    declared = getattr(model.generation_config, "eos_token_id", None)
    ids = declared if isinstance(declared, list) else [declared]
    return frozenset(int(i) for i in [*ids, tokenizer.eos_token_id] if i is not None)


def pad_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """A token to fill up with; it is never looked at."""
    for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return 0


def context_length(model: PreTrainedModel) -> int:
    """Tokens that the model has positions for, and reads all in one way.

    Models with `longrope` (Phi-3, Phi-4-mini) turn to other frequencies where a text outgrows their
    original length, for its beginning too; what a cache holds of that is then another model's.
    """
    config = model.config.get_text_config()
    longest = int(getattr(config, "max_position_embeddings", None) or 2**31)
    rope = getattr(config, "rope_parameters", None) or {}
    for part in (rope, *rope.values()):  # of the whole model, or by kind of layer
        if isinstance(part, dict) and part.get("rope_type") == "longrope":
            longest = min(longest, int(part.get("original_max_position_embeddings") or longest))
    return longest


def can_sanitize(tokenizer: PreTrainedTokenizerBase, env: ToolEnv[Any]) -> bool:
    """Whether this tokenizer can take `SANITIZED`, and a harmless chat is not changed by it."""
    name = next(iter(env.tools))
    call = {"type": "function", "function": {"name": name, "arguments": {"a": 1}}}
    chat: list[dict[str, Any]] = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": name, "content": "one, two"},
    ]
    rendered = []
    try:
        for options in ({}, SANITIZED):
            rendered.append(
                tokenizer.apply_chat_template(
                    chat,
                    tools=env.tool_schemas(),  # type: ignore[arg-type]
                    tokenize=True,
                    return_dict=False,
                    **options,
                )
            )
    except (NotImplementedError, TypeError, ValueError, TemplateError):
        return False
    return bool(rendered[0] == rendered[1])
