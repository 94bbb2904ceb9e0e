"""Tokenized examples: chat messages as token ids, with a loss mask; and special tokens.

Only what the assistant wrote is learnt, up to and with the token that ends its turn; a message with
`"weight": 0` is not. Where a turn lies is found by rendering the chat as it stood before it and as
it stands after: the difference is the turn. So it works with any chat template, whether or not it
marks the assistant's words, and prompt and turn are cut apart in tokens exactly where generation
will cut them.

Some templates render earlier turns differently once later ones follow (they drop old thoughts).
Such a transcript becomes several examples, each as the model would have seen it at that moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import Message

# What a tool returns is data. `toolgym.sanitize` has broken what any known chat format takes for
# control; the tokenizer's own control tokens are known to the tokenizer alone, which can be asked
# to encode them as plain text wherever a message, and not the template, wrote them.


SANITIZED: dict[str, Any] = {"sanitize_control_tokens": True}
"""What `apply_chat_template` is given to encode control tokens in messages as plain text."""


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
                    tools=env.tool_schemas(),
                    tokenize=True,
                    return_dict=False,
                    **options,
                )
            )
    except (NotImplementedError, TypeError, ValueError, TemplateError):
        return False
    return bool(rendered[0] == rendered[1])


def needs_calls(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the chat template shows a result only behind a message with `tool_calls`.

    Behind the same call as text gpt-oss' template refuses it, and Gemma 4's leaves it out.
    """
    call = {"type": "function", "function": {"name": "toolgym_name", "arguments": {}}}
    result: Message = {"role": "tool", "name": "toolgym_name", "content": "toolgym_result"}
    text: Message = {"role": "assistant", "content": "toolgym_call"}
    called: Message = {"role": "assistant", "content": "", "tool_calls": [call]}

    def is_shown(turn: Message) -> bool:
        chat = [{"role": "user", "content": "hello"}, turn, result]
        try:
            rendered = str(tokenizer.apply_chat_template(chat, tokenize=False))
        except (TemplateError, TypeError, ValueError):
            return False
        return "toolgym_result" in rendered

    return not is_shown(text) and is_shown(called)


@dataclass(frozen=True)
class Example:
    """Token ids of one text, and its loss mask; both of the same length."""

    ids: tuple[int, ...]
    learn: tuple[bool, ...]


def examples_of(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    tokenizer: PreTrainedTokenizerBase,
) -> Iterator[Example]:
    """The examples in one transcript: one, unless the template rewrites earlier turns.

    Args:
        messages: A chat with assistant turns.
        tools: In the OpenAI function format, for the template.

    Raises:
        ConfigurationError: The template does not put a turn after the prompt for it.
    """
    pieces: list[tuple[str, bool]] = []
    so_far = ""
    for turn in (i for i, message in enumerate(messages) if message["role"] == "assistant"):
        prompt = _render(messages[:turn], tools, tokenizer, prompted=True)
        spoken = _turn_text(prompt, _render(messages[: turn + 1], tools, tokenizer), tokenizer)
        if not prompt.startswith(so_far):
            yield _join(pieces, tokenizer)
            pieces, so_far = [], ""
        pieces += [(prompt[len(so_far) :], False), (spoken, bool(messages[turn].get("weight", 1)))]
        so_far = prompt + spoken
    if pieces:
        yield _join(pieces, tokenizer)


def _render(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    tokenizer: PreTrainedTokenizerBase,
    prompted: bool = False,
) -> str:
    text = tokenizer.apply_chat_template(
        list(messages), tools=list(tools), add_generation_prompt=prompted, tokenize=False
    )
    return str(text)


def _turn_text(prompt: str, whole: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """The text of the last turn, without what the template writes after its end."""
    if not whole.startswith(prompt):
        raise ConfigurationError(
            "this chat template renders a turn differently from the prompt for it, so it cannot be"
            " learnt from; use --chat-template hermes, --sft-steps 0, or a tokenizer with"
            " another chat template."
        )
    added, end = whole[len(prompt) :], str(tokenizer.eos_token)
    place = added.rfind(end)
    return added[: place + len(end)] if place >= 0 else added


def _join(pieces: Sequence[tuple[str, bool]], tokenizer: PreTrainedTokenizerBase) -> Example:
    ids: list[int] = []
    learn: list[bool] = []
    for text, learnt in pieces:
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        ids += tokens
        learn += [learnt] * len(tokens)
    return Example(tuple(ids), tuple(learn))
