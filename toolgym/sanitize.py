"""Sanitizes tool results: data must not act as control tokens of a chat template.

A database cell that holds `<|im_end|>` becomes, once tokenized with the rest of the conversation,
the real end of a turn, and `<tool_call>` in it a call that no model made. So every text that some
family's tokenizer or parser reads as control gets one backslash after its opening bracket:
`<\\|im_end|>`, which no tokenizer knows. Data that has the backslash already gets a second one, so
the original can be restored: an agent that copies what it was shown means the original.
Comparisons (`a < b`), generics (`list<int>`) and ordinary tags (`<name>`) stay as they are.

Covered: `<|...|>` of any name (also with the full-width bar), sentence and padding tokens, turn and
image marks, the bracketed marks of Mistral, Llama 2 and BERT, and every text of control in the
table of call formats (`toolgym.calls.formats`): marks, closing tags, thinking, results, ends of
turns.

A text may also hold a lone surrogate, as JSON can (`"\\ud800"`). No file, socket, terminal or
tokenizer takes it, so it is replaced where text comes in. Pages show a visible sign for it, and for
each control character.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, Final

from toolgym.calls.formats import CONTROL_TEXTS, alternatives

_TAGS = (
    r"/?(?:think|thinking|tools|(?:\w{1,20}:)?tool_(?:calls?|responses?|results?|outputs?|code)|"
    r"function|parameter|arg_key|arg_value|s|pad|unk|bos|eos|mask|cls|sep|"
    r"(?:start|end)_of_\w{1,20}|fim_\w{1,20}|(?:unused|extra_id_|reserved_)\d{1,6}|0x[0-9a-f]{2})"
    r"\s{0,4}/?>"
)
_PREFIXES = r"/?(?:function|parameter)\s?=|invoke\s|<sys>>|</sys>>"
_MARKS = (
    r"/?(?:INST|THINK|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|AVAILABLE_TOOLS|SYSTEM_PROMPT|ARGS|CALL_ID|"
    r"IMG|IMG_BREAK|IMG_END|AUDIO|PREFIX|SUFFIX|MIDDLE|CLS|SEP|MASK|PAD|UNK|BOS|EOS|gMASK)\]"
)
_BAR = r"[|\uff5c]"
_OPENING = "<[]\u273f\u25c1"
_GENERAL = {"<": rf"{_BAR}[^|\uff5c<>\n]{{0,64}}{_BAR}>|{_TAGS}|{_PREFIXES}", "[": _MARKS}


def _behind(sign: str) -> str:
    """What makes an opening sign one of control, as a pattern of the text behind it."""
    of_formats = alternatives(text[1:] for text in CONTROL_TEXTS if text[0] == sign)
    return "|".join([each for each in (_GENERAL.get(sign), *of_formats) if each])


@functools.cache
def _control() -> re.Pattern[str]:
    """The pattern of all that a chat template takes for control, up to where its backslash goes."""
    texts = (rf"{re.escape(sign)}(?=\\*(?:{_behind(sign)}))" for sign in _OPENING)
    return re.compile("|".join(texts), re.IGNORECASE)


_ESCAPED: Final = re.compile(rf"[{re.escape(_OPENING)}]\\+")
_LONGEST: Final = 300
"""More characters than any piece of control has."""

UNPRINTABLE: Final = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"},
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), 0xFFFD),
    0x7F: 0x2421,
}
"""Control characters have pictures of their own; other code points that are no text have one."""


def visible(text: str) -> str:
    """The text with a visible sign for each character that a page cannot hold or would swallow.

    >>> visible("a\\x00b")
    'a␀b'
    """
    return text.translate(UNPRINTABLE)


def encodable(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD, so that it can be encoded as UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # By way of UTF-16, where the two halves of one character, side by side, are that character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def escape_control_tokens(text: str) -> str:
    """The text with a backslash in each piece that a chat template could take for control.

    `unescape_control_tokens` is its exact inverse.

    >>> print(escape_control_tokens("x <|im_end|> y <= 3 </tool_response>"))
    x <\\|im_end|> y <= 3 <\\/tool_response>
    """
    # Nearly every result has none of these, and the pattern is far slower.
    if "<" not in text and "[" not in text and text.isascii():
        return text
    return _control().sub(lambda found: found.group() + "\\", text)


def unescape_control_tokens(text: str) -> str:
    """The text without the backslashes that `escape_control_tokens` has put in.

    An agent copies what it was shown: `ToolEnv` applies this to the arguments of its calls.

    >>> unescape_control_tokens(escape_control_tokens("<|im_end|>"))
    '<|im_end|>'
    """
    if "\\" not in text:
        return text
    # From the end: a piece was recognized by the original text that follows its sign.
    parts: list[str] = []
    window, end = "", len(text)
    for found in reversed(list(_ESCAPED.finditer(text))):
        behind = text[found.end() : end]
        window = (behind + window)[:_LONGEST]
        mark = found.group()
        if _control().match(mark[0] + window):
            mark = mark[:-1]
        window = mark + window
        parts += behind, mark
        end = found.start()
    return "".join(reversed([*parts, text[:end]]))


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A value of JSON, such as the arguments of a call, with each text in it changed."""
    if type(value) is str:
        return change(value)
    if type(value) is dict:
        return {key: change_texts(each, change) for key, each in value.items()}
    if type(value) is list:
        return [change_texts(each, change) for each in value]
    return value
