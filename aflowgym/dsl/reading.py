"""Going through the tokens of a text, with a record of what is wrong there.

The parser is built on this: where it is, what it says, and which operator a name means. Names are
compared without case, hyphens and underscores, aliases count, and a name of several words may be
written with blanks; each such reading is a warning. An unknown name is an error, whatever it
resembles; what it resembles is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from rapidfuzz import fuzz, process

from aflowgym.dsl.diagnostics import Diagnostic
from aflowgym.dsl.nodes import Node
from aflowgym.dsl.tokens import Token, tokenize
from aflowgym.operators import DONE_WORDS, Registry, key

#: Errors of grammar after which the rest is not reported.
MOST_ERRORS = 8
#: Percent of letters that a slip shares with the name that was meant.
_ALIKE = 60
#: Kinds of tokens with which a step can begin.
STARTS = frozenset({"word", "(", "["})


@dataclass(slots=True)
class Syntax:
    """What the parser makes of a text: a tree, sound only if there are no errors."""

    tree: Node | None
    diagnostics: list[Diagnostic]

    @property
    def sound(self) -> bool:
        """Whether the text is in the language, warnings aside."""
        return not any(found.code[0] == "E" for found in self.diagnostics)


def opens(token: Token, operators: Registry) -> bool:
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
    """

    def __init__(self, text: str, operators: Registry) -> None:
        self.text = text
        self.tokens, self.comments = tokenize(text)
        self.at = 0
        self.operators = operators
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
                name = self.operators.resolve_words(text)
                if name is not None:
                    whole = Token("word", text, words[0].start, words[-1].end)
                    self.say("W-OP-NAME", f"{text} is read as {name}.", whole, (name,))
                    return name, count
        return None
