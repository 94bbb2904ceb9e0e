"""Tokenized examples: chat messages as token ids with a loss mask.

The loss covers the assistant's turns, including the token that ends each turn, but not messages
with `"weight": 0`. The text of a turn is the difference between the chat rendered with the turn and
the chat rendered without it. Therefore any chat template works, even if it does not mark the turns
of the assistant. The boundary between prompt and turn is at the same token as in generation.

Some templates render earlier turns differently when later turns follow; for example, they drop
earlier thoughts. Such a transcript becomes several examples, each rendered in the form that the
model would have received at that turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import Message

# Tool results are data. `toolgym.sanitize` breaks the control sequences of all known chat formats.
# A tokenizer may have further control tokens. It encodes them as plain text if they are in a
# message and not in the template.


SANITIZED: dict[str, Any] = {"sanitize_control_tokens": True}
"""Options of `apply_chat_template` that encode control tokens in messages as plain text."""


def can_sanitize(tokenizer: PreTrainedTokenizerBase, env: ToolEnv[Any]) -> bool:
    """Return whether a tokenizer accepts `SANITIZED` and still renders ordinary chats unchanged."""
    name = next(iter(env.tools))
    call = {"type": "function", "function": {"name": name, "arguments": {"a": 1}}}
    chat: list[dict[str, Any]] = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": name, "content": "one, two"},
    ]
    options = {"tools": env.tool_schemas(), "tokenize": True, "return_dict": False}
    render: Any = partial(tokenizer.apply_chat_template, chat, **options)
    try:
        return bool(render() == render(**SANITIZED))
    except (NotImplementedError, TypeError, ValueError, TemplateError):
        return False


def needs_calls(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether the chat template shows a tool result only after a message with `tool_calls`.

    If the call appears only in the text of a message, the template of gpt-oss raises an error, and
    that of Gemma 4 drops the result.
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
    """Token ids of one sequence and its loss mask, both of the same length."""

    ids: tuple[int, ...]
    learn: tuple[bool, ...]


def examples_of(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    tokenizer: PreTrainedTokenizerBase,
) -> Iterator[Example]:
    """Return the examples of one transcript.

    There is one example, unless the template renders earlier turns differently when later turns
    follow.

    Args:
        messages: A chat with assistant turns.
        tools: Tool schemas in the OpenAI function format.
        tokenizer: Tokenizer with a chat template.

    Raises:
        ConfigurationError: If the rendered chat does not begin with the prompt of its last turn.
    """
    render: Any = partial(tokenizer.apply_chat_template, tools=list(tools), tokenize=False)
    end = str(tokenizer.eos_token)
    ids: list[int] = []
    learn: list[bool] = []
    so_far = ""
    for turn in (i for i, message in enumerate(messages) if message["role"] == "assistant"):
        prompt = str(render(list(messages[:turn]), add_generation_prompt=True))
        whole = str(render(list(messages[: turn + 1])))
        if not whole.startswith(prompt):
            raise ConfigurationError(
                "with this chat template a rendered chat does not begin with the prompt of its last"
                " turn, so the turn cannot be learned. Use --chat-template hermes, --sft-steps 0,"
                " or a tokenizer with another chat template."
            )
        written = whole[len(prompt) :]
        position = written.rfind(end)
        if position >= 0:  # excludes text that the template adds after the turn
            written = written[: position + len(end)]
        if not prompt.startswith(so_far):
            yield Example(tuple(ids), tuple(learn))
            ids, learn, so_far = [], [], ""
        is_learned = bool(messages[turn].get("weight", 1))
        for text, mask in ((prompt[len(so_far) :], False), (written, is_learned)):
            tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
            ids += tokens
            learn += [mask] * len(tokens)
        so_far = prompt + written
    if ids:
        yield Example(tuple(ids), tuple(learn))


def learned_turns(example: Example, tokenizer: PreTrainedTokenizerBase) -> Iterator[str]:
    """Return the text of each turn in the loss, including the token that ends the turn."""
    for is_learned, places in groupby(range(len(example.ids)), key=example.learn.__getitem__):
        if is_learned:
            yield str(tokenizer.decode([example.ids[place] for place in places]))
