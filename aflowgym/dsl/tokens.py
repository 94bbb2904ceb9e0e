"""From characters to tokens.

Blanks and line breaks separate and mean nothing else; a comment runs from `#` or `//` to the end of
its line. A character that the language does not use becomes a token of its own, so that every text
has tokens and the parser says where it stumbled. A full-width sign is the sign that it is wide for;
a token keeps what was written, so that the parser can say how it was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

#: The arrows that are understood, the first one is canonical.
ARROWS = ("->", "-->", "=>", "→", "⇒", "|>", ">>", "⟶", "⟹", "➜", "➔", "➡", "–>", "—>", "−>")
#: The signs of a repetition, the first one is canonical.
TIMES = ("*", "×", "✕", "✖", "∗")
#: The marks; a token of this kind is of the kind that the mark is.
MARKS = frozenset("[]()?:,")
#: Full-width signs, and what each is wide for; no quotes, as instructions stand in them.
WIDE = str.maketrans("？：（）［］【】，、＊－＞＝０１２３４５６７８９", "?:()[][],,*->=0123456789")

_ARROW = "|".join(re.escape(arrow) for arrow in sorted(ARROWS, key=len, reverse=True))
_SHAPES = rf"""
      \s* (?:
      (?P<word> [A-Za-z_][A-Za-z0-9_]* (?: -[A-Za-z0-9_]+ )* )
    | (?P<arrow> (?: {_ARROW} ) \ufe0f? )
    | (?P<mark> [][()?:,] )
    | (?P<comment> (?: \# | // ) [^\n]* )
    | (?P<times> [{"".join(TIMES)}] )
    | (?P<int> [0-9]+ )
    | (?P<string> " (?: [^"\\\n] | \\[^\n] )* " )
    | (?P<other> \S ) )
    """
_TOKEN = re.compile(_SHAPES, re.VERBOSE | re.DOTALL)
# The same where no string can begin, and how far a quote that nothing closes was looked through.
_UNQUOTED = re.compile(
    _SHAPES.replace('(?P<string> "', '(?P<string> (?!) "'), re.VERBOSE | re.DOTALL
)
_OPEN = re.compile(r'"(?:[^"\\\n]|\\[^\n])*+')


class Token(NamedTuple):
    """One token: a kind, its text, and where it stands.

    The kind is `word`, `arrow`, `times`, `int`, `string`, `other`, `end`, or the mark itself.
    """

    kind: str
    text: str
    start: int
    end: int


def tokenize(text: str) -> tuple[list[Token], list[Token]]:
    """The tokens of a text, with one of kind `end` behind them; and its comments."""
    tokens: list[Token] = []
    comments: list[Token] = []
    ascii_only = text.isascii()
    for found in _matches(text if ascii_only else text.translate(WIDE)):
        kind = found.lastgroup or "other"
        written = found[kind]
        start, end = found.span(kind)
        if kind == "mark":
            kind = written
        if not ascii_only:
            written = text[start:end]
        if kind == "comment":
            comments.append(Token(kind, written, start, end))
        else:
            tokens.append(Token(kind, written, start, end))
    length = len(text)
    tokens.append(Token("end", "", length, length))
    return tokens, comments


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Every token, one behind the other.

    A quote that nothing closes is a character that the language does not use. Whatever quotes
    stand between it and the end of its line are escaped for it, and closed by nothing either: they
    are not looked through again, one by one.
    """
    # Blanks at the end, before no token, would be tried from each of their places.
    at, end, barren = 0, len(text.rstrip()), 0
    while at < end:
        found = (_UNQUOTED if at < barren else _TOKEN).match(text, at, end)
        if found is None:  # never, as anything but a blank is a token
            return
        yield found
        at = found.end()
        if found[0][-1] == '"' and found.lastgroup == "other" and at > barren:
            opened = _OPEN.match(text, at - 1, end)
            barren = opened.end() if opened else barren


_ESCAPE = re.compile(r'\\([\\"nt])')
_MEANS = {"\\": "\\", '"': '"', "n": "\n", "t": "\t"}


def unquoted(string: str) -> str:
    r"""What a quoted instruction says.

    Only `\"`, `\\`, `\n` and `\t` are escapes: a backslash before anything else is a backslash, for
    the sake of formulas.
    """
    return _ESCAPE.sub(lambda found: _MEANS[found[1]], string[1:-1])
