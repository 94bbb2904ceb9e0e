"""`ParsingTokenizer`: responses parsed in training as they are in evaluation.

TRL reads calls by itself: JSON that does not load, or one broken call beside a good one, makes the
whole turn plain text, and the rollout just ends; a misspelt tool gets "not found". None of that
reaches the environment, so the model neither learns what was wrong nor is charged for it. Here
`toolgym.parse_calls` decides what is a call, and the message goes to `ToolEnv.step` as it was
written.

Two small objects stand where TRL looks: here a tokenizer that parses a response our way (and asks
TRL's parser where ours finds nothing, for formats that only a model's own template knows), and, for
each rollout, a tool dictionary that holds every name (`tool_loop.ToolLookup`).
"""

from __future__ import annotations

import json
from typing import Any

from toolgym.calls import ToolCall, parse_calls
from toolgym.tools import ToolSpec

_OPENED = "<think>"


class ParsedMessage(dict[str, Any]):
    """An assistant message with tool calls, and the text that they were parsed from.

    Attributes:
        action: The action for the environment: the text, or the calls that only TRL could parse.
    """

    action: Any


class ParsingTokenizer:
    """A tokenizer whose `parse_response` is toolgym's parser; all else is the wrapped tokenizer's.

    Args:
        tokenizer: The wrapped one.
        tools: The environment's tools.
    """

    def __init__(self, tokenizer: Any, tools: dict[str, ToolSpec]) -> None:
        self._tokenizer = tokenizer
        self._tools = tools

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Tokenize, as the wrapped tokenizer does."""
        return self._tokenizer(*args, **kwargs)

    def parse_response(self, response: list[int], **options: Any) -> dict[str, Any]:
        """One generated turn as a message.

        Args:
            response: Token ids of the turn.
            options: `prefix`, the ids before it, and `tools`, as TRL passes them.
        """
        text = self.response_text(response, options.get("prefix"))
        calls = parse_calls(text, self._tools)
        if not calls:
            return self._parse_as_trl(response, text, options)
        message = ParsedMessage(role="assistant", content=text)
        message["tool_calls"] = [_call_for_trl(call) for call in calls]
        message.action = text
        return message

    def response_text(self, response: list[int], prefix: list[int] | None) -> str:
        """The turn's text without its end token, with the `<think>` that the prompt may open."""
        text = str(self._tokenizer.decode(response, clean_up_tokenization_spaces=False))
        for token in (self._tokenizer.eos_token, self._tokenizer.pad_token):
            text = text.removesuffix(token or "")
        before = self._tokenizer.decode(prefix[-16:]) if prefix else ""
        return _OPENED + text if before.rstrip().endswith(_OPENED) else text

    def _parse_as_trl(
        self, response: list[int], text: str, options: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            parsed = self._tokenizer.parse_response(response, **options)
        except (ValueError, TypeError):  # TRL takes it for plain text, too
            parsed = None
        calls = (parsed or {}).get("tool_calls")
        if not calls:
            return parsed or {"role": "assistant", "content": text}
        message = ParsedMessage(parsed)
        message.action = [call.get("function", call) for call in calls]
        return message


def _call_for_trl(call: ToolCall) -> dict[str, Any]:
    """A call as TRL counts and logs it; it is played from the text.

    TRL writes completions to parquet, which knows neither empty structs nor columns of two types,
    so the arguments have one shape throughout.
    """
    arguments = {"json": json.dumps(call.arguments, ensure_ascii=False, default=repr)}
    function = {"name": call.name or "unknown", "arguments": arguments}
    return {"type": "function", "function": function}
