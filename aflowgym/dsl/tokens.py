"""The tokens of a text, and a reader that goes through them with a record of what is wrong there.

Blanks and line breaks separate and mean nothing else; a comment runs from `#` or `//` to the end of
its line. A character that the language does not use becomes a token of its own, so that every text
has tokens and the parser says where it stumbled. A full-width sign is the sign that it is wide for;
a token keeps what was written, so that the parser can say how it was read.

The parser is built on `Reader`: where it is, what it says, and which operator a name means. Names
are compared without case, hyphens and underscores, aliases count, and a name of several words may
be written with blanks; each such reading is a warning. An unknown name is an error, whatever it
resembles; what it resembles is shown. The words for signs are known here too: `then` for an arrow,
`x 3`, `3 times` and the like for `* 3`, unless an operator is called so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rapidfuzz import fuzz, process

from aflowgym.dsl.diagnostics import Diagnostic, has_error
from aflowgym.dsl.nodes import Node
from aflowgym.operators.operator import DONE_WORDS, Operators, key

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
    for match in _matches(text if ascii_only else text.translate(WIDE)):
        kind = match.lastgroup or "other"
        written = match[kind]
        start, end = match.span(kind)
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
        match = (_UNQUOTED if at < barren else _TOKEN).match(text, at, end)
        if match is None:  # never, as anything but a blank is a token
            return
        yield match
        at = match.end()
        if match[0][-1] == '"' and match.lastgroup == "other" and at > barren:
            opened = _OPEN.match(text, at - 1, end)
            barren = opened.end() if opened else barren


_ESCAPE = re.compile(r'\\([\\"nt])')
_MEANS = {"\\": "\\", '"': '"', "n": "\n", "t": "\t"}


def unquote(string: str) -> str:
    r"""The text of a quoted instruction.

    Only `\"`, `\\`, `\n` and `\t` are escapes: a backslash before anything else is a backslash, for
    the sake of formulas.
    """
    return _ESCAPE.sub(lambda match: _MEANS[match[1]], string[1:-1])


#: Errors of grammar after which the rest is not reported.
MOST_ERRORS = 8
#: Percent of letters that a slip shares with the name that was meant.
_ALIKE = 60
#: Fewest and most repetitions.
TIMES_RANGE = (1, 5)
#: Kinds of tokens with which a step can begin.
STARTS = frozenset({"word", "(", "["})
#: Kinds of tokens with which a count can begin, `x 3` or `(3 times)`.
MAY_COUNT = frozenset({"times", "word", "int", "other", "("})
_FACTOR = frozenset({"x", "times"})
_BEFORE_A_COUNT = frozenset({"repeat", "repeated", "up", "to", "at", "most"})
_NUMBERS = {"two": "2", "three": "3", "four": "4", "five": "5"}
_COUNTS = {"twice": "2", "thrice": "3"}


@dataclass(slots=True)
class Syntax:
    """The result of the parser: a tree, sound only if there are no errors."""

    tree: Node | None
    diagnostics: list[Diagnostic]

    @property
    def sound(self) -> bool:
        """Whether the text is in the language, warnings aside."""
        return not has_error(self.diagnostics)


def opens(token: Token, operators: Operators) -> bool:
    """Whether a branch can begin with a token."""
    if token.kind != "word":
        return token.kind in STARTS
    return token.text.lower() in DONE_WORDS or operators.resolve(token.text) is not None


class Halt(Exception):
    """The first error of a reading that has no use for a second one."""


class Reader:
    """A place among the tokens of a text, and what has been said about it.

    Args:
        text: The text, of which every token must belong to the workflow.
        operators: The operators that names are looked up in.
        prose: Whether words stand around the workflow: `then` is an arrow only between names in
            their canonical spelling or brackets.
    """

    def __init__(self, text: str, operators: Operators, prose: bool = False) -> None:
        self.text = text
        self.tokens, self.comments = tokenize(text)
        self.at = 0
        self.operators = operators
        if "then" in text.lower():
            self._then(prose)
        self.found: list[Diagnostic] = []
        self.depth = 0
        self.copied = 0
        self.errors = 0
        self.halting = False

    def say(self, code: str, message: str, token: Token, expected: tuple[str, ...] = ()) -> None:
        """Record something about a token; of errors, the first few."""
        if code[0] == "E":
            self.errors += 1
            if self.errors > MOST_ERRORS:
                return
        span = (token.start, token.end)
        self.found.append(Diagnostic(code, message, span, token.text, expected))
        if self.halting and code[0] == "E":
            raise Halt

    def unexpected(self, expected: tuple[str, ...], where: str) -> None:
        """Record that the token at hand has no place here."""
        token = self.tokens[self.at]
        shown = repr(token.text) if token.kind != "end" else "the end"
        if token.kind == "other" and token.text == ";":
            self.say(
                "E-TWO-WORKFLOWS", "One workflow at a time; ';' divides nothing.", token, expected
            )
        elif token.kind == "other":
            self.say("E-CHAR", f"The language does not use {shown}.", token, expected)
        else:
            self.say("E-EXPECTED", f"{shown} cannot stand {where}.", token, expected)

    def say_signs(self, first: int) -> None:
        """Record the signs from a token up to here that are not the grammar's, each one once."""
        if not self.text.isascii():
            read = self.tokens[first : self.at]
            wide = {each.text: each for each in reversed(read) if each.kind in MARKS}
            for token in sorted(wide.values()):
                if token.text != token.kind:
                    message = f"It is written {token.kind}, not {token.text}."
                    self.say("W-SIGN-SPELLING", message, token, (token.kind,))

    # --- words for signs --------------------------------------------------------------------

    def spells(self, at: int, words: Collection[str]) -> bool:
        """Whether a token is one of these words, and no operator's name."""
        kind, text, *_ = self.tokens[at]
        return kind == "word" and text.lower() in words and self.operators.resolve(text) is None

    def _then(self, prose: bool) -> None:
        """Make an arrow of each `then` that leads to a step."""
        for at, token in enumerate(self.tokens[:-1]):
            if self.spells(at, ("then",)):
                before, after = self.tokens[at - 1] if at else token, self.tokens[at + 1]
                leads = not prose or (
                    (after.kind != "word" or after.text in self.operators)
                    and (before.kind in (")", "]", "int") or before.text in self.operators)
                )
                if after.kind in STARTS and leads:
                    self.tokens[at] = token._replace(kind="arrow")

    def count(self) -> tuple[Token, int] | None:
        """The number of `x 3`, `3 times` and the like at hand, and the token behind it.

        `* 3` itself is none of them, except for what may follow it: `* 3 times`.
        """
        first, at = self.tokens[self.at], self.at
        if first.kind not in ("times", "other") and not self._on_one_line(at - 1, at):
            return None
        if first.kind != "(":
            return self._count(at)
        counted = self._count(at + 1)
        closed = counted is not None and self.tokens[counted[1]].kind == ")"
        return (counted[0], counted[1] + 1) if counted is not None and closed else None

    def _count(self, at: int) -> tuple[Token, int] | None:
        tokens, (kind, text, start, end) = self.tokens, self.tokens[at]
        if kind == "other":
            braces = text == "{" and [each.text for each in tokens[at + 2 : at + 3]] == ["}"]
            if (text == "^" or braces) and tokens[at + 1].kind == "int":
                return tokens[at + 1], at + 2 + braces
            return None
        if kind == "times" or self.spells(at, _FACTOR):
            if tokens[at + 1].kind != "int":
                return None
            return tokens[at + 1], at + 2 + self.spells(at + 2, ("times",))
        if self.spells(at, _COUNTS):
            return Token("int", _COUNTS[text.lower()], start, end), at + 1
        if kind == "word" and text[0] in "xX" and text[1:].isdigit() and text[1:].isascii():
            return Token("int", text[1:], start + 1, end), at + 1
        while self.spells(at, _BEFORE_A_COUNT):
            at += 1
        number = tokens[at]
        if number.kind == "word" and number.text.lower() in _NUMBERS:
            number = number._replace(kind="int", text=_NUMBERS[number.text.lower()])
        counted = number.kind == "int" and self.spells(at + 1, _FACTOR)
        return (number, at + 2) if counted else None

    def begins(self, token: Token) -> bool:
        """Whether a step begins with the token at hand: also with `3 x` or `3 *` before one."""
        at = self.at
        if token.kind != "int":
            return token.kind in STARTS
        factor = self.tokens[at + 1].kind == "times" or self.spells(at + 1, _FACTOR)
        step = factor and self.tokens[at + 2].kind in STARTS
        return step and self._on_one_line(at, at + 1) and self._on_one_line(at + 1, at + 2)

    def times(self, number: Token, behind: int) -> int:
        """Step over a count; how often it says, and how it is written if that is not `* n`."""
        first, self.at = self.at, behind
        sign, last = self.tokens[first], self.tokens[behind - 1]
        if (sign.text, behind) != ("*", first + 2) or not number.text.isascii():
            text = self.text[sign.start : last.end]
            whole = Token(sign.kind, text, sign.start, last.end)
            plain = f"* {number.text.translate(WIDE)}"
            self.say("W-TIMES-SPELLING", f"It is written {plain}, not {text}.", whole, (plain,))
        least, most = TIMES_RANGE
        # A number of more digits than Python reads is too large, whatever it is.
        written = int(number.text) if len(number.text) < 9 else most + 1
        times = min(max(written, least), most)
        if times != written:
            message = f"A loop runs {least} to {most} times, so this is read as {times}."
            self.say("W-LOOP-RANGE", message, number, (str(times),))
        return times

    def _on_one_line(self, first: int, last: int) -> bool:
        return "\n" not in self.text[self.tokens[first].end : self.tokens[last].start]

    # --- names ------------------------------------------------------------------------------

    def resolved(self, token: Token) -> tuple[str, int]:
        """The operator behind a spelling that is not canonical, and how many words it takes."""
        name = self.operators.resolve(token.text)
        joined = self.joined() if self.tokens[self.at + 1].kind == "word" else None
        if joined is not None:
            return joined
        if name is None:
            name = self.nearest(token)
        else:
            message = f"{token.text} is read as {name}."
            self.say("W-OP-NAME", message, token, (name,))
        return name, 1

    def nearest(self, token: Token) -> str:
        """The operator that an unknown name is a slip for; empty if it resembles none."""
        spellings = self.operators.spellings
        near = process.extractOne(key(token.text), spellings.keys(), scorer=fuzz.ratio)
        alike = near is not None and near[1] >= _ALIKE
        name = spellings[near[0]] if alike else ""
        message = f"There is no operator {token.text!r}."
        if alike:
            message += f" Did you mean {name}?"
        self.say("E-OP-UNKNOWN", message, token, tuple(self.operators))
        return name

    def joined(self) -> tuple[str, int] | None:
        """`custom code generate`: an operator whose name is written with blanks."""
        for count in (3, 2):
            words = self.tokens[self.at : self.at + count]
            if len(words) == count and all(word.kind == "word" for word in words):
                text = self.text[words[0].start : words[-1].end]  # a comment inside is no blank
                name = self.operators.resolve(text)
                if name is not None:
                    whole = Token("word", text, words[0].start, words[-1].end)
                    self.say("W-OP-NAME", f"{text} is read as {name}.", whole, (name,))
                    return name, count
        return None
