"""Escapes control tokens of chat templates in tool results, and replaces lone surrogates.

A database cell with the text `<|im_end|>` would be tokenized as the end of a turn. A cell with
`<tool_call>` would be parsed as a call by the model. Therefore a backslash is inserted after the
opening bracket of every string that a tokenizer or parser treats as a control string:
`<\\|im_end|>`. No tokenizer treats the result as a control token. If the backslash is already
present, a second one is inserted, so that the original can be restored. If an agent copies escaped
text into a call, the text is unescaped. Comparisons (`a < b`), generics (`list<int>`) and ordinary
tags (`<name>`) are not escaped.

The following strings are escaped: `<|...|>` with any name (also with the full-width bar), sentence
and padding tokens, turn and image marks, and the bracketed marks of Mistral, Llama 2 and BERT.
Every control string in the table of call formats (`toolgym.calls.formats`) is also escaped: marks,
closing tags, thinking, results, ends of turns.

JSON can also contain a lone surrogate (`"\\ud800"`), which cannot be encoded for a file, socket,
terminal or tokenizer. Lone surrogates are replaced in all input. HTML reports show a visible symbol
in place of each lone surrogate and each control character.
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


def _control_rest(sign: str) -> str:
    """Return a pattern for the rest of all control strings that begin with an opening bracket."""
    of_formats = alternatives(text[1:] for text in CONTROL_TEXTS if text[0] == sign)
    return "|".join([each for each in (_GENERAL.get(sign), *of_formats) if each])


@functools.cache
def _control() -> re.Pattern[str]:
    """Return the pattern of the opening bracket of a control string, after which the backslash is
    inserted."""
    texts = (rf"{re.escape(sign)}(?=\\*(?:{_control_rest(sign)}))" for sign in _OPENING)
    return re.compile("|".join(texts), re.IGNORECASE)


_ESCAPED: Final = re.compile(rf"[{re.escape(_OPENING)}]\\+")
_LONGEST: Final = 300
"""Maximum length of a control string, in characters."""

UNPRINTABLE: Final = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"},
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), 0xFFFD),
    0x7F: 0x2421,
}
"""Visible symbols of control characters; all other nontext code points share one symbol."""


def visible(text: str) -> str:
    """Replace each character that an HTML page cannot show with a visible symbol.

    >>> visible("a\\x00b")
    'a␀b'
    """
    return text.translate(UNPRINTABLE)


def encodable(text: str) -> str:
    """Replace every lone surrogate with U+FFFD, so that the text can be encoded as UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # UTF-16 joins the two surrogates of one character into that character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def escape_control_tokens(text: str) -> str:
    """Insert a backslash into each string that a chat template could treat as a control token.

    `unescape_control_tokens` is its exact inverse.

    >>> print(escape_control_tokens("x <|im_end|> y <= 3 </tool_response>"))
    x <\\|im_end|> y <= 3 <\\/tool_response>
    """
    # Most results contain none of these brackets, and the pattern is much slower.
    if "<" not in text and "[" not in text and text.isascii():
        return text
    return _control().sub(lambda found: found.group() + "\\", text)


def unescape_control_tokens(text: str) -> str:
    """Remove the backslashes that `escape_control_tokens` inserted.

    Agents copy text from observations, so `ToolEnv` applies this to the arguments of calls.

    >>> unescape_control_tokens(escape_control_tokens("<|im_end|>"))
    '<|im_end|>'
    """
    if "\\" not in text:
        return text
    # From the end, because a control string is identified by the original text after its bracket.
    parts: list[str] = []
    window, end = "", len(text)
    for found in reversed(list(_ESCAPED.finditer(text))):
        after = text[found.end() : end]
        window = (after + window)[:_LONGEST]
        mark = found.group()
        if _control().match(mark[0] + window):
            mark = mark[:-1]
        window = mark + window
        parts += after, mark
        end = found.start()
    return "".join(reversed([*parts, text[:end]]))


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Apply a function to each string in a JSON value, such as the arguments of a call."""
    if type(value) is str:
        return change(value)
    if type(value) is dict:
        return {key: change_texts(each, change) for key, each in value.items()}
    if type(value) is list:
        return [change_texts(each, change) for each in value]
    return value
