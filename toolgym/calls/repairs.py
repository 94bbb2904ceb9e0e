"""The table of repairs: mistakes in a call that are corrected.

Each repair has an example. `before` is the text of a model, and `after` is the repaired call for an
environment with the tools `describe(table_name)`, `sample(table_name)`, `query(sql)` and the
terminal `answer(value)`. The tests run every example. `find` and `bind` record only repairs of this
table.

The codes of a call are reported in the order of the table, without repetition. Native formats of
other model families (XML functions, `[TOOL_CALLS]`, bare JSON, Python calls) are not mistakes, so
they have no code here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Repair:
    """A kind of mistake that is repaired.

    Attributes:
        code: Stable identifier, as in `ToolCall.repairs`.
        does: Description of the repair in one sentence, for the documentation.
        before: A text that needs this repair and no other.
        after: The repaired call, as (name, arguments).
    """

    code: str
    does: str
    before: str
    after: tuple[str, dict[str, Any]]


REPAIRS: dict[str, Repair] = {}


def _repair(code: str, does: str, before: str, after: tuple[str, dict[str, Any]]) -> Repair:
    repair = Repair(code, does, before, after)
    REPAIRS[code] = repair
    return repair


def in_order(repairs: Iterable[Repair]) -> tuple[str, ...]:
    """Return the codes of the repairs in the order of the table, without repetition."""
    codes = {repair.code for repair in repairs}
    return tuple(code for code in REPAIRS if code in codes) if codes else ()


def from_codes(codes: Iterable[str]) -> tuple[Repair, ...]:
    """Return the repairs with these codes; unknown codes are ignored."""
    return tuple(REPAIRS[code] for code in codes if code in REPAIRS)


_SINGER: tuple[str, dict[str, Any]] = ("describe", {"table_name": "singer"})

MISSING_CLOSE_TAG = _repair(
    "missing_close_tag",
    "Accepts a complete call whose tag is not closed.",
    '<tool_call>\n{"name": "describe", "arguments": {"table_name": "singer"}}',
    _SINGER,
)
BARE_ARGUMENT = _repair(
    "bare_argument",
    "Interprets a message that consists only of a tool's argument as a call of the tool.",
    "SELECT 1",
    ("query", {"sql": "SELECT 1"}),
)
REPAIRED_JSON = _repair(
    "repaired_json",
    "Repairs JSON: missing brackets, single or missing quotes, raw line breaks, a fence, or a"
    " list in a tag.",
    "<tool_call>\n{'name': 'describe', 'arguments': {'table_name': 'singer'}\n</tool_call>",
    _SINGER,
)
REPLACED_SURROGATE = _repair(
    "replaced_surrogate",
    "Replaces an unpaired surrogate, which cannot be stored in a file or database, with U+FFFD.",
    '<tool_call>\n{"name": "answer", "arguments": {"value": "a\\ud83d"}}\n</tool_call>',
    ("answer", {"value": "a\ufffd"}),
)
RENAMED_FIELD = _repair(
    "renamed_field",
    "Renames `tool`, `tool_name`, `function` to `name`; `args`, `input`, `kwargs` to `arguments`.",
    '<tool_call>\n{"tool": "describe", "args": {"table_name": "singer"}}\n</tool_call>',
    _SINGER,
)
FLAT_ARGUMENTS = _repair(
    "flat_arguments",
    "Takes the arguments from the top level of a call that has no `arguments`.",
    '<tool_call>\n{"name": "query", "sql": "SELECT 1"}\n</tool_call>',
    ("query", {"sql": "SELECT 1"}),
)
DECODED_ARGUMENTS = _repair(
    "decoded_arguments",
    "Decodes arguments that were encoded as a JSON string, once or several times.",
    '<tool_call>\n{"name": "describe", "arguments": "{\\"table_name\\": \\"singer\\"}"}\n'
    "</tool_call>",
    _SINGER,
)
UNWRAPPED_ARGUMENTS = _repair(
    "unwrapped_arguments",
    "Unwraps arguments that are nested in an extra object.",
    '<tool_call>\n{"name": "describe", "arguments": {"arguments": {"table_name": "singer"}}}\n'
    "</tool_call>",
    _SINGER,
)
POSITIONAL_ARGUMENTS = _repair(
    "positional_arguments",
    "Assigns positional values to the tool's arguments in order.",
    'describe("singer")',
    _SINGER,
)
RENAMED_TOOL = _repair(
    "renamed_tool",
    "Matches a tool name regardless of case, separators and namespace, by alias or similarity.",
    '<tool_call>\n{"name": "functions.Describe", "arguments": {"table_name": "singer"}}\n'
    "</tool_call>",
    _SINGER,
)
DROPPED_NULL = _repair(
    "dropped_null",
    "Drops a null value for an unknown argument or for an argument with a default.",
    '<tool_call>\n{"name": "describe", "arguments": {"sql": null, "table_name": "singer"}}\n'
    "</tool_call>",
    _SINGER,
)
RENAMED_KEY = _repair(
    "renamed_key",
    "Renames the only unknown key to the only missing required argument.",
    '<tool_call>\n{"name": "describe", "arguments": {"table": "singer"}}\n</tool_call>',
    _SINGER,
)
DROPPED_ARGUMENT = _repair(
    "dropped_argument",
    "Drops an argument that the tool does not have.",
    '<tool_call>\n{"name": "describe", "arguments": {"table_name": "singer", "limit": 5}}\n'
    "</tool_call>",
    _SINGER,
)
COERCED_VALUE = _repair(
    "coerced_value",
    "Converts a value to the type of the argument, or unwraps a list or object with one entry.",
    '<tool_call>\n{"name": "describe", "arguments": {"table_name": ["singer"]}}\n</tool_call>',
    _SINGER,
)
STRIPPED_FENCE = _repair(
    "stripped_fence",
    "Removes a code fence or quotes around the entire text of a code argument.",
    '<tool_call>\n{"name": "query", "arguments": {"sql": "```sql\\nSELECT 1\\n```"}}\n</tool_call>',
    ("query", {"sql": "SELECT 1"}),
)
