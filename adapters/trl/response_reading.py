"""`with_call_reading`: a tokenizer for `GRPOTrainer` that passes every call to the environment.

TRL parses calls itself. By default, TRL treats a message with a call that is not valid JSON as
plain text, and the rollout ends. TRL answers a call of an unknown tool with "not found". TRL
penalizes neither mistake and does not tell the model what was wrong. The tokenizer made by this
module parses a response in the same way as the environment. If TRL and the environment find the
same calls in a message, TRL handles the message. In any other message with calls, each call becomes
a call of an existing tool that carries the entire message (`WrittenMessage`), and the environment
processes the original message.

The tokens do not change, since `GRPOTrainer` appends results to the sampled tokens.
`AsyncGRPOTrainer` renders the messages again for each turn, so pass it the original tokenizer.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from adapters.trl.environment import MESSAGE, RolloutEnvironment, WrittenMessage
from toolgym.calls import FORMATS, ToolCall, bind_call, opened_thought, parse_calls
from toolgym.errors import ConfigurationError, ToolgymError
from toolgym.tools import ToolSpec

Specs = Mapping[str, ToolSpec]
T = TypeVar("T")
_MARKS: Final = tuple(dict.fromkeys(mark for each in FORMATS for mark in each.marks))
_LONGEST: Final = 20_000
"""Length above which transformers does not parse a message, since it may take quadratic time.
"""
_PLAIN: Final[dict[str, Any]] = {
    "defaults": {"role": "assistant"},
    "start_anchor_pattern": "^",
    "fields": {"content": {"content": "text"}},
}
"""A response template that treats every response as plain text."""


def with_call_reading(tokenizer: T) -> T:
    """Return a copy of a tokenizer for `GRPOTrainer(processing_class=...)`.

    Do not use this tokenizer for `AsyncGRPOTrainer`.

    Args:
        tokenizer: A `PreTrainedTokenizerBase` with a chat template. TRL does not have to support
            the call format of the template.

    Returns:
        A tokenizer that differs from the original only in `parse_response`, and only for the tools
        of an `environment_factory` with lenient parsing. Saving this tokenizer saves the original
        one. The tokenizer cannot be combined with `GRPOTrainer(tools=...)`.

    Raises:
        ConfigurationError: If the installed version of transformers does not accept tools when
            parsing responses.
    """
    from trl.chat_template_utils import add_response_schema

    made: Any = copy.deepcopy(tokenizer)
    if "tools" not in inspect.signature(made.parse_response).parameters:
        raise ConfigurationError(
            "with_call_reading needs transformers 5.15 or newer. Upgrade transformers."
        )
    if getattr(made, "response_template", None) is None:
        try:
            add_response_schema(made)
        except ValueError:  # TRL does not know the chat template
            made.response_template = _PLAIN
    reading: T = _reading(made)
    return reading


def _reading(tokenizer: Any) -> Any:
    """Return the same tokenizer as an instance of a subclass, whose name is saved with it."""
    if isinstance(tokenizer, _CallReading):
        return tokenizer
    base = type(tokenizer)
    members = {"__module__": base.__module__, "_base": base}
    tokenizer.__class__ = type(base.__name__, (_CallReading, base), members)
    return tokenizer


class _CallReading:
    """A base class that precedes the class of a tokenizer."""

    _base: Any

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Copy and pickle the original tokenizer, since the subclass cannot be imported."""
        plain = self._base.__new__(self._base)
        vars(plain).update(vars(self))
        return _reading, (plain,)

    def parse_response(
        self, response: Any, schema: Any = None, *, prefix: Any = None, tools: Any = None
    ) -> Any:
        """Return one response as a message. TRL passes token ids, and the tools as methods."""
        parser: Any = super()
        parse = partial(parser.parse_response, response, schema, prefix=prefix, tools=tools)
        owners = [getattr(tool, "__self__", None) for tool in tools or ()]
        environments = [each for each in owners if isinstance(each, RolloutEnvironment)]
        if not environments or environments[0]._parsing == "strict":
            return _parsed(parse)
        if len(environments) < len(owners):
            raise ToolgymError(
                "with_call_reading passes whole messages to the environment, which has no tools of"
                " GRPOTrainer(tools=...). Make each of them a @tool of the environment."
            )
        specs = environments[0]._tools
        own: Any = self
        written = list(response)
        while written and written[-1] in (own.eos_token_id, own.pad_token_id):
            written.pop()
        # a thinking tag at the end of the prompt belongs to the text
        text = opened_thought(own.decode(prefix[-16:]) if prefix else "")
        text += own.decode(written, clean_up_tokenization_spaces=False)
        calls = parse_calls(text, specs)
        try:
            message = _parsed(parse) if len(text) <= _LONGEST else None
        except (ValueError, TypeError):
            if not calls:
                raise  # TRL continues with the text
            message = None
        told = _calls_of(message)
        if calls or not told:
            return _message(message, told, text, calls, specs)
        if any(mark in text for mark in _MARKS):
            # Calls in a thought, or calls that are only mentioned.
            return {"role": "assistant", "content": text}
        return _message(message, told, told, parse_calls(told, specs), specs)


def _parsed(parse: Callable[[], Any]) -> Any:
    """Return the message as transformers parses it.

    Raises:
        ValueError: If the message cannot be parsed. TRL then treats the message as text.
    """
    try:
        return parse()
    except RecursionError as problem:
        raise ValueError("the message is nested too deeply") from problem


def _calls_of(message: Any) -> list[dict[str, Any]]:
    """Return the calls that TRL would run, with or without `function` around them."""
    calls = (message or {}).get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function", call) if isinstance(call, dict) else call
        known = function if isinstance(function, dict) else {}
        found.append({"name": str(known.get("name")), "arguments": known.get("arguments") or {}})
    return found


def _message(
    message: Any, told: list[dict[str, Any]], action: Any, calls: list[ToolCall], specs: Specs
) -> Any:
    """Return the message as TRL reads it, or one that carries `action`.

    The first form is used if TRL would run the same calls. TRL looks up a tool by its exact name.

    Args:
        message: The message as TRL reads it.
        told: Calls of the message as TRL reads them.
        action: The message as the environment reads it.
        calls: Calls as the environment reads them.
        specs: Tools of the environment.
    """
    if all(each["name"] in specs and isinstance(each["arguments"], dict) for each in told):
        bound = [bind_call(each["name"], each["arguments"], specs) for each in told]
        if repr(bound) == repr(calls):  # 10.0 and True are other values than 10 and 1
            return message or {"role": "assistant", "content": action}
    content = action if isinstance(action, str) else json.dumps(action, default=repr)
    tool_calls = []
    for place, call in enumerate(calls):
        written = WrittenMessage(content)
        written.action, written.place = action, place
        name = call.name if call.name in specs else next(iter(specs))
        function = {"name": name, "arguments": {MESSAGE: written}}
        tool_calls.append({"type": "function", "function": function})
    return {"role": "assistant", "content": content, "tool_calls": tool_calls}
