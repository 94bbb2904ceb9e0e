"""The tags of the formats whose arguments are bare text between tags, one `Tags` for each.

Two shapes: a parameter whose name is an attribute (`<parameter=x>`, `<invoke name="f">` with
`<parameter name="x">` in some namespace, Kimi K3's `<|open|>argument key="x"<|sep|>`), and a key
and a value in tags of their own (`<arg_key>x</arg_key><arg_value>...`, GLM). How they are read, and
what is done where a value holds such tags, is said in `toolgym.calls.xml_forms`.

Patterns are possessive throughout: a run of blanks is never divided between two places.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from toolgym.calls.alternation import LatePattern


@dataclass(frozen=True)
class Tags:
    """The tags of a format.

    Attributes:
        kind: The name of the format, in `toolgym.calls.families`.
        call: What opens a call.
        head: What opens a call, with its name; None where the name stands elsewhere (GLM).
        opening: What opens a parameter, with its name.
        close: What closes a value, or how that begins.
        ends: What closes a call, then what closes the section around calls.
        marks: All tags that a value could hold by mistake.
        opens: Those of them that open something, the parameter first.
        follow: What may follow a value.
        end: What may follow the last value where tags are missing.
        stop: Where a call ends at the latest.
        quotes: What may stand around the text of a value.
    """

    kind: str
    call: str
    head: LatePattern | None
    opening: LatePattern
    close: str
    ends: tuple[str, ...]
    marks: LatePattern
    opens: tuple[str, ...]
    follow: LatePattern
    end: LatePattern
    stop: LatePattern
    quotes: tuple[str, str] = ("", "")


def _any(texts: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, texts))


def _tags(
    kind: str,
    *,
    head: str,
    call: str,
    opening: str,
    parameter: str,
    close: str,
    ends: tuple[str, ...],
    sections: tuple[str, ...],
    closing: str = "",
    quotes: tuple[str, str] = ("", ""),
) -> Tags:
    """A set of tags from its literal texts and two patterns, each with one group for the name.

    Args:
        head: The pattern of what opens a call; empty if its name stands elsewhere.
        call: How that begins.
        opening: The pattern of what opens a parameter.
        parameter: How that begins.
        closing: The pattern of what closes a value, where `close` is only its beginning.
    """
    opens = (parameter, call, *sections) if head else (parameter, *sections)
    outer = _any(ends[1:]) or "(?!)"
    marks = f"{_any(ends)}|{closing or re.escape(close)}|{_any(opens)}"
    if ends[1:]:
        end = rf"\s*+(?:{re.escape(ends[0])}\s*+)?+(?:(?:{outer})\s*+)?+\Z"
    else:
        end = rf"\s*+(?:{re.escape(ends[0])}\s*+)?+\Z"
    return Tags(
        kind=kind,
        call=call,
        head=LatePattern(head) if head else None,
        opening=LatePattern(rf"\s*+{opening}"),
        close=close,
        ends=ends,
        marks=LatePattern(marks),
        opens=opens,
        follow=LatePattern(rf"\s*+(?:{re.escape(parameter)}|{_any(ends)}|\Z)"),
        end=LatePattern(end),
        stop=LatePattern(f"{_any(ends)}|{_any((call, *sections))}"),
        quotes=quotes,
    )


_NAME: Final = r"[\"']?+\s*+([^<>\s\"']*+)\s*+[\"']?+"
_KEY: Final = r"[\"']?+\s*+([^<>\s\"']++)\s*+[\"']?+"
_OTHERS: Final = r"(?:\s++\w++\s*+=\s*+(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\s\"'<>/]++))*+"


def _attributes(kind: str, space: str, sections: tuple[str, ...]) -> Tags:
    """Tags of the kind `<invoke name="f"><parameter name="x">`, their names in a namespace."""
    prefix = re.escape(space)
    return _tags(
        kind,
        head=rf"<{prefix}invoke\s++name\s*+=\s*+{_NAME}{_OTHERS}\s*+(/?)>",
        call=f"<{space}invoke ",
        opening=rf"<{prefix}parameter\s++name\s*+=\s*+{_KEY}{_OTHERS}\s*+>",
        parameter=f"<{space}parameter ",
        close=f"</{space}parameter>",
        ends=(f"</{space}invoke>", *(f"</{name}>" for name in sections)),
        sections=tuple(f"<{name}>" for name in sections),
    )


FUNCTION: Final = _tags(
    "qwen3-coder",
    head=rf"<function=\s*+{_NAME}\s*+(/?)>",
    call="<function=",
    opening=rf"<parameter=\s*+{_KEY}\s*+>",
    parameter="<parameter=",
    close="</parameter>",
    ends=("</function>", "</tool_call>", "</seed:tool_call>"),
    sections=("<tool_call>", "<seed:tool_call>"),
)
"""Qwen 3 Coder: `<function=f><parameter=x>value</parameter></function>`."""


def _pairs(kind: str, outer: str, space: str = "", between: str = "") -> Tags:
    """Tags of the kind `<arg_key>x</arg_key><arg_value>value</arg_value>`, in an outer tag."""
    prefix = re.escape(space)
    return _tags(
        kind,
        head="",
        call=f"<{outer}>",
        opening=rf"<{prefix}arg_key>\s*+([^<>\s]++)\s*+</{prefix}arg_key>\s*+{between}"
        rf"<{prefix}arg_value>",
        parameter=f"<{space}arg_key>",
        close=f"</{space}arg_value>",
        ends=(f"</{outer}>",),
        sections=(f"<{space}arg_value>", f"<{outer}>"),
    )


GLM: Final = _pairs("glm", "tool_call")
"""GLM 4.5: `f<arg_key>x</arg_key><arg_value>value</arg_value>` in `<tool_call>`."""
IQUEST: Final = _pairs("iquest", "iquest_tool_call")
LONGCAT: Final = _pairs("longcat-tags", "longcat_tool_call", "longcat_")
SOLAR: Final = _tags(
    "solar",
    head="",
    call="<|tool_call:start|>",
    opening=r"<\|tool_arg:start\|>\s*+([^<>\s]++)\s*+<\|tool_arg:value\|>",
    parameter="<|tool_arg:start|>",
    close="<|tool_arg:end|>",
    ends=("<|tool_call:end|>",),
    sections=("<|tool_arg:value|>", "<|tool_call:start|>"),
)
HORIZON: Final = _pairs(
    "k2-horizon", "ifm|tool_call", "ifm|", r"(?:<ifm\|arg_type>[^<>]*+</ifm\|arg_type>\s*+)?+"
)
"""K2 Horizon: the type of a value may stand between its key and itself."""
MINIMAX: Final = _attributes("minimax-m2", "", ("minimax:tool_call", "function_calls"))
DSML: Final = _attributes("deepseek-v3.2", "\uff5cDSML\uff5c", ("\uff5cDSML\uff5cfunction_calls",
                                                       "\uff5cDSML\uff5ctool_calls"))  # fmt: skip
DSML_SPACED: Final = _attributes("deepseek-v4.1", "\uff5cDSML\uff5c ", ("\uff5cDSML\uff5c calls",))
GCML: Final = _attributes("gigachat-3.5", "\uff5cGCML\uff5c", ("\uff5cGCML\uff5ctool_calls",))
STEP: Final = _attributes("step-3", "steptml:", ("\uff5ctool_call_end\uff5c",))
ATEM: Final = _attributes("muse", "atem:", ("atem:function_calls",))
MINICPM: Final = _tags(
    "minicpm-5",
    head=rf"<function\s++name\s*+=\s*+{_NAME}\s*+(/?)>",
    call="<function ",
    opening=rf"<param\s++name\s*+=\s*+{_KEY}\s*+>",
    parameter="<param ",
    close="</param>",
    ends=("</function>",),
    sections=(),
    quotes=("<![CDATA[", "]]>"),
)
"""MiniCPM 5: `<function name="f"><param name="x">value</param></function>`."""
KIMI_K3: Final = _tags(
    "kimi-k3",
    head=rf"<\|open\|>call\s++tool\s*+=\s*+{_NAME}{_OTHERS}\s*+()<\|sep\|>",
    call="<|open|>call ",
    opening=rf"<\|open\|>argument\s++key\s*+=\s*+{_KEY}{_OTHERS}\s*+<\|sep\|>",
    parameter="<|open|>argument ",
    close="<|close|>argument<|sep|>",
    ends=("<|close|>call<|sep|>", "<|close|>tools<|sep|>"),
    sections=(),
)
_M3: Final = "]<]minimax[>["
MINIMAX_M3: Final = _tags(
    "minimax-m3",
    head=rf"\]<\]minimax\[>\[\s*+<invoke\s++name\s*+=\s*+{_NAME}\s*+(/?)>",
    call=f"{_M3}<invoke ",
    opening=r"\]<\]minimax\[>\[\s*+<([\w.\-]++)>",
    parameter=f"{_M3}<",
    close=f"{_M3}</",
    closing=r"\]<\]minimax\[>\[</[\w.\-]++>",
    ends=(f"{_M3}</invoke>", f"{_M3}</tool_call>"),
    sections=(),
)
"""MiniMax M3: each tag behind a token of its own, a parameter's name being that of its tag."""

TAG_SETS: Final = (
    *(FUNCTION, GLM, IQUEST, LONGCAT, SOLAR, HORIZON, MINIMAX, DSML, DSML_SPACED),
    *(GCML, STEP, ATEM, MINICPM, KIMI_K3, MINIMAX_M3),
)
CLOSERS: Final = tuple(dict.fromkeys(tags.close for tags in TAG_SETS if tags is not MINIMAX_M3))
"""What closes a value in any of them, but in MiniMax M3, where it begins as what closes a call."""
