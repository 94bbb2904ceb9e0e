"""In training, a message means what it means in evaluation.

TRL reads calls by itself: JSON that does not load, or one broken call beside a good one, makes the
whole turn plain text, and the rollout just ends; a misspelt tool is told "not found". None of that
reaches the environment, so the model is neither told what was wrong nor charged for it. Here
`toolgym.parse_calls` decides what is a call, and the message goes to `ToolEnv.step` as it was
written.

Two small objects stand where TRL looks: here a tokenizer that parses a response our way (and asks
TRL's parser where ours finds nothing, for formats that only a model's own template knows), and, for
each rollout, a tool dictionary that holds every name (`crew`).
"""

from __future__ import annotations

import json
from typing import Any

from toolgym.calls import ToolCall, parse_calls
from toolgym.tools import ToolSpec

_OPENED = "<think>"


class SpokenMessage(dict[str, Any]):
    """An assistant message with tool calls that remembers what the model wrote.

    Attributes:
        action: What the environment is given: the text, or the calls that only TRL could read.
    """

    action: Any


class ReadingTokenizer:
    """A tokenizer as TRL uses it after its construction, whose responses our parser reads.

    Args:
        tokenizer: The one it stands for; everything else is its.
        tools: The environment's tools.
    """

    def __init__(self, tokenizer: Any, tools: dict[str, ToolSpec]) -> None:
        self._tokenizer = tokenizer
        self._tools = tools

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Tokenize, as the tokenizer does."""
        return self._tokenizer(*args, **kwargs)

    def parse_response(self, response: list[int], **options: Any) -> dict[str, Any]:
        """One generated turn as a message.

        Args:
            response: Token ids of the turn.
            options: `prefix`, the ids before it, and `tools`, as TRL passes them.
        """
        text = self.spoken(response, options.get("prefix"))
        calls = parse_calls(text, self._tools)
        if not calls:
            return self._as_trl_reads(response, text, options)
        message = SpokenMessage(role="assistant", content=text)
        message["tool_calls"] = [_shown(call) for call in calls]
        message.action = text
        return message

    def spoken(self, response: list[int], prefix: list[int] | None) -> str:
        """The turn's text without what ends it, and with the `<think>` that the prompt may open."""
        text = str(self._tokenizer.decode(response, clean_up_tokenization_spaces=False))
        for token in (self._tokenizer.eos_token, self._tokenizer.pad_token):
            text = text.removesuffix(token or "")
        before = self._tokenizer.decode(prefix[-16:]) if prefix else ""
        return _OPENED + text if before.rstrip().endswith(_OPENED) else text

    def _as_trl_reads(
        self, response: list[int], text: str, options: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            parsed = self._tokenizer.parse_response(response, **options)
        except (ValueError, TypeError):  # what TRL takes for plain text, too
            parsed = None
        found = (parsed or {}).get("tool_calls")
        if not found:
            return parsed or {"role": "assistant", "content": text}
        message = SpokenMessage(parsed)
        message.action = [call.get("function", call) for call in found]
        return message


def _shown(call: ToolCall) -> dict[str, Any]:
    """A call for TRL to count and to log; it is played from the text.

    TRL writes completions to parquet, which knows neither empty structs nor columns of two types,
    so the arguments have one shape throughout.
    """
    arguments = {"json": json.dumps(call.arguments, ensure_ascii=False, default=repr)}
    function = {"name": call.name or "unknown", "arguments": arguments}
    return {"type": "function", "function": function}
