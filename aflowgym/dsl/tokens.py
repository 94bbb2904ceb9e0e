"""The tokenizer of the workflow language.

Every string can be tokenized. A character that is not part of the language becomes a token of kind
`other`. Tokens are separated by spaces and line breaks, and a comment extends from `#` or `//` to
the end of the line; `##` starts a heading, not a comment.

The tokenizer also recognizes alternative spellings of symbols that models often use: other arrows
and `then`, full-width characters, `else` for a colon, and `x 3`, `3 times` or `{3}` for `* 3`. A
token keeps the original text, so that the parser can report an alternative spelling.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: The arrows. The first one is canonical.
ARROWS = ("->", "-->", "=>", "→", "⇒", "|>", ">>", "⟶", "⟹", "➜", "➔", "➡", "–>", "—>", "−>")
#: Full-width signs and their ASCII forms. Quotes are excluded, because they delimit instructions.
WIDE = str.maketrans("？：（）［］【】，、＊－＞＝０１２３４５６７８９", "?:()[][],,*->=0123456789")

_ARROW = "|".join(re.escape(arrow) for arrow in sorted(ARROWS, key=len, reverse=True))
_WORD_COUNT = r"""(?i: twice | thrice
      | (?: x | times [ \t] ) [ \t]* [0-9]++ (?: [ \t]+ times )?
      | (?: (?: repeat | repeated | up [ ] to | at [ ] most ) [ \t]+ )?
        (?: [0-9]++ | two | three | four | five ) [ \t]* (?: x | times ) ) (?![\w-])"""
_TOKEN = re.compile(
    rf"""
      \s* (?:
      (?P<count> [*×✕✖∗^] \s* [0-9]++ (?! \w ) (?: [ \t]+ (?i: times ) (?! \w ) )?
        | [0-9]++ [ \t]* [*×✕✖∗] (?= [ \t]* [A-Za-z_(\[] ) | [{{] [ ]? [0-9]++ [ ]? [}}]
        | {_WORD_COUNT} | \( {_WORD_COUNT} \) )
    | (?P<arrow> (?: {_ARROW} ) \ufe0f? | (?i: then ) (?= \s+ [A-Za-z_(\[] ) )
    | (?P<colon> (?i: else | otherwise ) (?! [\w-] ) )
    | (?P<word> [A-Za-z_][A-Za-z0-9_]* (?: -[A-Za-z0-9_]+ )* )
    | (?P<mark> [][()?:,*×] )
    | (?P<comment> (?: \# (?! \# ) | // ) [^\n]* )
    | (?P<int> [0-9]+ )
    | (?P<string> " (?: [^"\\\n] | \\[^\n] )*+ " )
    | (?P<other> " (?: [^"\\\n] | \\[^\n] )*+ | \S ) )
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """One token.

    Args:
        kind: `word`, `arrow`, `count`, `int`, `string`, `other`, `end`, or the symbol itself.
        text: The original text.
        start: Index of its first character.
        end: Index after its last character.
    """

    kind: str
    text: str
    start: int
    end: int


def tokenize(text: str) -> tuple[list[Token], list[Token]]:
    """Return the tokens of a string, followed by a token of kind `end`, and its comments.

    >>> [token.kind for token in tokenize("Custom x 3 -> Review")[0]]
    ['word', 'count', 'arrow', 'word', 'end']
    """
    tokens: list[Token] = []
    comments: list[Token] = []
    plain = text if text.isascii() else text.translate(WIDE)
    for match in _TOKEN.finditer(plain, 0, len(text.rstrip())):
        kind = match.lastgroup or "other"
        start, end = match.span(kind)
        if kind == "comment":
            comments.append(Token(kind, text[start:end], start, end))
            continue
        if kind == "mark":
            kind = plain[start:end]
        elif kind == "colon":
            kind = ":"
        tokens.append(Token(kind, text[start:end], start, end))
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens, comments


_NUMBERS = {"tw": 2, "th": 3, "fo": 4, "fi": 5}


def number(count: str) -> int:
    """Return the number in a token of kind `count`, truncated to three digits."""
    digits = re.search("[0-9]+", count.translate(WIDE))
    if digits is not None:
        return int(digits[0].lstrip("0")[:3] or 0)
    return next(value for word, value in _NUMBERS.items() if word in count.lower())


_ESCAPE = re.compile(r'\\([\\"nt])')
_MEANS = {"\\": "\\", '"': '"', "n": "\n", "t": "\t"}


def unquote(string: str) -> str:
    r"""Return the text of a quoted instruction.

    The escapes are `\"`, `\\`, `\n` and `\t`. Any other backslash is kept, because formulas can
    contain backslashes.
    """
    return _ESCAPE.sub(lambda match: _MEANS[match[1]], string[1:-1])
