"""A recursive-descent parser that converts tokens to a tree and recovers from errors.

`GRAMMAR` defines the complete language. The parser also accepts a few unambiguous deviations (an
extra arrow, an alias, an alternative symbol) and reports each as a warning. After an error, the
parser continues, in order to report further errors and to build a tree from which a corrected
workflow can be constructed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from aflowgym.dsl.diagnostics import Diagnostic, has_error
from aflowgym.dsl.nodes import DONE, Cond, Done, ListOf, Node, Op, Repeat, sequence, size
from aflowgym.dsl.tokens import Token, number, tokenize, unquote
from aflowgym.operators.operator import DONE_WORDS, Operators, key

GRAMMAR = """\
workflow := seq [ARROW DONE]
seq      := step { ARROW step }
step     := atom [rep] [cond]
cond     := "?" branch [ ":" branch ]
branch   := DONE | atom [rep]
rep      := "*" INT
atom     := OP [ "(" STRING ")" ] | "(" seq ")" | "[" seq { "," seq } "]"
"""

#: Maximum nesting of brackets.
DEEPEST_TEXT = 40
#: Maximum number of operators in all lists of a text with copies expanded, since `* 5` in nested
#: lists multiplies.
MOST_COPIED = 10_000
#: Maximum number of grammar errors that are reported.
MOST_ERRORS = 8
#: Minimum and maximum number of repetitions.
TIMES_RANGE = (1, 5)
# Minimum similarity, in percent, between an unknown name and a suggested one.
_ALIKE = 70
_CLOSER = {"(": ")", "[": "]"}
_ATOM = ("an operator", "(", "[")


@dataclass(slots=True)
class Syntax:
    """The result of the parser: a tree, which is valid only if no diagnostic is an error."""

    tree: Node | None
    diagnostics: list[Diagnostic]

    @property
    def sound(self) -> bool:
        """Whether the text conforms to the grammar, possibly with warnings."""
        return not has_error(self.diagnostics)


class Parser:
    """A parser for one sequence of tokens, all of which must belong to the workflow."""

    def __init__(self, text: str, operators: Operators) -> None:
        self.text = text
        self.tokens, self.comments = tokenize(text)
        self.operators = operators
        self.at = 0
        self.depth = 0
        self.copied = 0
        self.errors = 0
        self.found: list[Diagnostic] = []

    def say(self, code: str, message: str, token: Token, expected: tuple[str, ...] = ()) -> None:
        """Record a diagnostic about a token. Only the first few errors are kept."""
        if code[0] == "E":
            self.errors += 1
            if self.errors > MOST_ERRORS:
                return
        span = (token.start, token.end)
        self.found.append(Diagnostic(code, message, span, token.text, expected))

    def workflow(self) -> Syntax:
        """Parse the complete text."""
        tree = self._seq(("end",), "a workflow")
        for comment in self.comments:
            self.say("N-COMMENT", "A comment was ignored.", comment)
        other = {each.text: each for each in reversed(self.tokens) if each.kind in "()[]?:,"}
        for token in sorted(other.values()):
            if token.text != token.kind:
                message = f"Write {token.kind} instead of {token.text}."
                self.say("W-SIGN-SPELLING", message, token, (token.kind,))
        return Syntax(tree, self.found)

    def _unexpected(self, expected: tuple[str, ...], where: str) -> None:
        token = self.tokens[self.at]
        shown = repr(token.text) if token.kind != "end" else "the end"
        if token.text == ";":
            message = "Write one workflow; `;` does not separate steps."
            self.say("E-TWO-WORKFLOWS", message, token, expected)
        elif token.kind == "other":
            self.say("E-CHAR", f"The language does not use {shown}.", token, expected)
        elif token.kind in "*×":
            expected = ("a number from 1 to 5",)
            self.say("E-EXPECTED", f"There is no number after {shown}.", token, expected)
        else:
            self.say("E-EXPECTED", f"{shown} cannot be {where}.", token, expected)

    def _on_one_line(self, at: int) -> bool:
        """Return whether no line break precedes a token."""
        return "\n" not in self.text[self.tokens[at - 1].end : self.tokens[at].start]

    def _begins(self, token: Token) -> bool:
        """Return whether a step begins with the current token, including `3 x`."""
        if token.kind == "count":
            after = self.tokens[self.at + 1].kind in ("word", "(", "[")
            return after and token.text[0].isdigit() and self._on_one_line(self.at + 1)
        return token.kind in ("word", "(", "[")

    # --- sequences --------------------------------------------------------------------------

    def _seq(self, closers: tuple[str, ...], what: str) -> Node | None:
        """Read steps up to one of `closers`."""
        first = self.tokens[self.at]
        steps: list[Node] = []
        linked = True  # whether a step may follow
        while True:
            token = self.tokens[self.at]
            if token.kind == "arrow":
                self._arrow(token, extra=linked)
                linked = True
            elif self._begins(token):
                if token.kind == "word" and token.text.lower() in DONE_WORDS:
                    self._done_in_sequence(token, bool(steps) and linked)
                    continue
                if not linked:
                    self.say("E-EXPECTED", "An arrow is missing here.", token, ("->",))
                step = self._step()
                if step is not None:
                    steps.append(step)
                linked = step is None  # after an error the next word is not another error
            elif token.kind in closers or token.kind == "end":
                break
            else:
                linked = self._stray(token, steps, linked)
        if not steps:
            self.say("E-EMPTY", f"There is no operator in {what}.", token, _ATOM)
            return None
        last = self.tokens[self.at - 1]
        if linked and last.kind == "arrow":
            self.say("E-EXPECTED", "An arrow leads to nothing.", last, _ATOM)
        return steps[0] if len(steps) == 1 else sequence(steps, (first.start, token.start))

    def _arrow(self, token: Token, extra: bool) -> None:
        self.at += 1
        if token.text != "->":
            message = f"Write -> instead of {token.text}."
            self.say("W-ARROW-SPELLING", message, token, ("->",))
        after = self.tokens[self.at]
        if extra and (after.kind == "arrow" or self._begins(after)):
            self.say("W-ARROW-EXTRA", "There is an extra arrow.", token)

    def _done_in_sequence(self, token: Token, linked: bool) -> None:
        """Read `done` in place of a step. It is only allowed at the very end, without effect."""
        self.at += 1
        if linked and self.depth == 0 and self.tokens[self.at].kind == "end":
            self._spelling_of_done(token)
            self.say("W-DONE-END", "`-> done` at the end does nothing.", token)
            return
        message = "`done` is a branch of a condition, or the very end of a workflow."
        self.say("E-DONE-PLACE", message, token, _ATOM)

    def _stray(self, token: Token, steps: list[Node], linked: bool) -> bool:
        """Report and skip a token that no sequence contains. Return whether a step may follow."""
        if token.kind in "?:" and steps and isinstance(steps[-1], Cond):
            message = "A condition inside another needs parentheses around it."
            self.say("E-COND-NESTED", message, token, ("->", "( ... )"))
        else:
            self._unexpected(_ATOM if linked else ("->", "*", "?"), "here")
        self.at += 1
        return linked or token.text == ";"

    # --- steps ------------------------------------------------------------------------------

    def _step(self) -> Node | None:
        start = self.tokens[self.at].start
        node = self._repetition()
        question = self.tokens[self.at]
        if node is None or question.kind != "?":
            return node
        self.at += 1
        fail = self._branch()
        passed: Node | Done | None = DONE
        if self.tokens[self.at].kind == ":":
            self.at += 1
            passed = self._branch()
        else:
            message = "Without `:`, nothing is done when the check passes."
            self.say("W-COND-ELSE", message, question, (": done",))
        if fail is None or passed is None:
            return node
        if fail is DONE and passed is DONE:
            self.say("W-COND-EMPTY", "Both branches are `done`.", question, ("an operator",))
        elif fail is DONE:
            message = "`done` comes first; the other branch runs when the check fails."
            self.say("W-COND-POLARITY", message, question)
            fail, passed = passed, fail
        return Cond(node, fail, passed, (start, self.tokens[self.at - 1].end))

    def _branch(self) -> Node | Done | None:
        token = self.tokens[self.at]
        if token.kind == "word" and token.text.lower() in DONE_WORDS:
            self.at += 1
            self._spelling_of_done(token)
            return DONE
        if self._begins(token):
            return self._repetition()
        self._unexpected(("done", *_ATOM), "a branch")
        return None

    def _spelling_of_done(self, token: Token) -> None:
        if token.text != "done":
            message = f"Write done instead of {token.text}."
            self.say("W-DONE-SPELLING", message, token, ("done",))

    def _repetition(self) -> Node | None:
        first = self.tokens[self.at]
        times = self._times(first) if first.kind == "count" else None
        node = self._atom()
        token = self.tokens[self.at]
        if node is None:
            return None
        after = token.text[:1] in ("*", "×") or self._on_one_line(self.at)
        if times is None and token.kind == "count" and after:
            times = self._times(token)
        if times is None:
            return node
        return Repeat(node, times, (first.start, self.tokens[self.at - 1].end))

    def _times(self, token: Token) -> int:
        """Skip a count and return its number, clipped to the allowed range."""
        self.at += 1
        written = number(token.text)
        least, most = TIMES_RANGE
        times = min(max(written, least), most)
        if not re.fullmatch(r"\*\s*[0-9]+", token.text):
            plain = f"* {written}"
            message = f"Write {plain} instead of {token.text}."
            self.say("W-TIMES-SPELLING", message, token, (plain,))
        if times != written:
            message = f"A loop runs {least} to {most} times; this one runs {times} times."
            self.say("W-LOOP-RANGE", message, token, (str(times),))
        return times

    # --- atoms ------------------------------------------------------------------------------

    def _atom(self) -> Node | None:
        token = self.tokens[self.at]
        if token.kind == "word":
            return self._op(token)
        if self.depth >= DEEPEST_TEXT:
            self.say("E-SIZE", f"More than {DEEPEST_TEXT} brackets inside one another.", token)
            self.at = len(self.tokens) - 1
            return None
        self.depth += 1
        self.at += 1
        if token.kind == "(":
            node = self._seq((")",), "these parentheses")
            self._close("(")
        else:
            node = self._list(token)
        self.depth -= 1
        return node

    def _op(self, token: Token) -> Node | None:
        name = token.text if token.text in self.operators else None
        self.at += 1
        if name is None or self.tokens[self.at].kind == "word":
            name = self._other_spelling(token) or name
        end = self.tokens[self.at - 1].end
        instruction = ""
        if self.tokens[self.at].kind == "(" and self.tokens[self.at + 1].kind == "string":
            instruction = unquote(self.tokens[self.at + 1].text)
            self.at += 2
            self._close("(")
            end = self.tokens[self.at - 1].end
        return Op(name, instruction, (token.start, end)) if name else None

    def _other_spelling(self, token: Token) -> str | None:
        """Return the operator of an alias, another spelling, or several words.

        An example is `custom code generate`.
        """
        for count in (2, 1, 0):
            words = self.tokens[self.at : self.at + count]
            if all(word.kind == "word" for word in words):
                end = words[-1].end if words else token.end
                text = self.text[token.start : end]
                joined = "".join(map(str.capitalize, text.split())) if words else text
                name = self.operators.resolve(joined)
                if name == text:
                    return name
                if words and name and joined not in (name, *self.operators[name].aliases):
                    name = None
                if name is not None:
                    self.at += len(words)
                    whole = Token("word", text, token.start, end)
                    self.say("W-OP-NAME", f"{text} is read as {name}.", whole, (name,))
                    return name
        spellings = self.operators.spellings
        near = process.extractOne(
            key(token.text), spellings.keys(), scorer=fuzz.ratio, score_cutoff=_ALIKE
        )
        name = spellings[near[0]] if near else None
        message = f"There is no operator {token.text!r}."
        message += f" Did you mean {name}?" if name else ""
        self.say("E-OP-UNKNOWN", message, token, tuple(self.operators))
        return name

    def _list(self, opened: Token) -> Node | None:
        branches: list[Node] = []
        while True:
            branches += self._branches()
            comma = self.tokens[self.at]
            if comma.kind != ",":
                break
            self.at += 1
            if self.tokens[self.at].kind in ("]", "end"):
                self.say("W-COMMA", "A comma after the last branch.", comma)
                break
        self._close("[")
        span = (opened.start, self.tokens[self.at - 1].end)
        return ListOf(tuple(branches), span) if branches else None

    def _branches(self) -> tuple[Node, ...]:
        """Read one item of a list. `X * n` without parentheses means n branches."""
        first = self.at
        node = self._seq((",", "]"), "this place of the list")
        while self.tokens[first].kind == "arrow":
            first += 1
        token = self.tokens[first]
        # A loop in parentheses begins after the start of its item.
        if not isinstance(node, Repeat) or node.span[0] != token.start:
            return (node,) if node is not None else ()
        if node.times > 1 and self.copied <= MOST_COPIED:
            self.copied += (node.times - 1) * size(node.body)[0]
        if self.copied <= MOST_COPIED:
            return (node.body,) * node.times
        self.say("E-SIZE", f"Lists of more than {MOST_COPIED:,} operators.", token)
        return (node.body,)

    def _close(self, opened: str) -> None:
        closer = _CLOSER[opened]
        token = self.tokens[self.at]
        if token.kind == closer:
            self.at += 1
        else:
            self._unexpected((closer,), "here")


def read(text: str, operators: Operators) -> Syntax:
    """Parse a string that consists only of a workflow."""
    return Parser(text, operators).workflow()
