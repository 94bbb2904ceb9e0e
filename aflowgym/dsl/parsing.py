"""The parser: from tokens to a tree, by recursive descent with recovery.

`GRAMMAR` is the whole language. On top of it the parser reads what is meant beyond doubt (an arrow
too many, a bracket missing at the very end, an alias) and says so in a warning. At anything else it
records an error and goes on, as if the missing were there and the superfluous were not: the tree it
leaves is then no workflow that runs, but what a corrected one is made from.
"""

from __future__ import annotations

from aflowgym.dsl.nodes import DONE, Cond, Done, ListOf, Node, Op, Repeat, Span, sequence, size
from aflowgym.dsl.tokens import MAY_COUNT, STARTS, Halt, Reader, Syntax, Token, unquote
from aflowgym.operators.operator import DONE_WORDS, Operators

GRAMMAR = """\
workflow := seq [ARROW DONE]
seq      := step { ARROW step }
step     := atom [rep] [cond]
cond     := "?" branch [ ":" branch ]
branch   := DONE | atom [rep]
rep      := "*" INT
atom     := OP [ "(" STRING ")" ] | "(" seq ")" | "[" seq { "," seq } "]"
"""

#: How many parentheses and brackets may stand inside one another before reading stops.
DEEPEST_TEXT = 40
#: How many operators the copies in lists may come to, in one text. Lists in lists multiply: twelve
#: of `[... * 5]` inside one another would stand for 244 million.
MOST_COPIED = 10_000
_CLOSER = {"(": ")", "[": "]"}
_ATOM = ("an operator", "(", "[")


class Parser(Reader):
    """One pass over the tokens of a text, all of which must belong to the workflow."""

    def workflow(self) -> Syntax:
        """Read everything."""
        tree = self._seq(("end",), "a workflow")
        self.say_signs(0)
        for comment in self.comments:
            self.say("N-COMMENT", "A comment was set aside.", comment)
        return Syntax(tree, self.found)

    def prefix(self, at: int) -> Syntax:
        """Read from a token as far as the language goes, at most to the first error.

        `at` is then the token behind.
        """
        self.at, self.depth, self.errors, self.found = at, 0, 0, []
        self.halting = True
        try:
            tree = self._seq((), "a workflow")
            self.say_signs(at)
            return Syntax(tree, self.found)
        except Halt:
            return Syntax(None, self.found)

    # --- sequences --------------------------------------------------------------------------

    def _seq(self, closers: tuple[str, ...], what: str) -> Node | None:
        """Steps up to one of `closers`; with none given, up to whatever is no step."""
        first = self.tokens[self.at]
        steps: list[Node] = []
        linked = True  # whether a step may come next
        while True:
            token = self.tokens[self.at]
            if token.kind == "arrow":
                self._arrow(token, extra=linked)
                linked = True
            elif (linked or closers) and self.begins(token):
                if token.kind == "word" and token.text.lower() in DONE_WORDS:
                    self._done_in_sequence(token, bool(steps) and linked, closers)
                    continue
                if not linked:
                    self.say("E-EXPECTED", "An arrow is missing here.", token, ("->",))
                step = self._step()
                if step is not None:
                    steps.append(step)
                linked = step is None  # after an error the next word is not one more
            elif token.kind in closers or token.kind == "end" or not closers:
                break
            else:
                linked = self._stray(token, steps, linked)
        if not steps:
            self.say("E-EMPTY", f"There is no operator in {what}.", token, _ATOM)
            return None
        last = self.tokens[self.at - 1]
        if linked and last.kind == "arrow":
            self.say("W-ARROW-EXTRA", "An arrow leads to nothing.", last)
        return steps[0] if len(steps) == 1 else sequence(steps, (first.start, token.start))

    def _arrow(self, token: Token, extra: bool) -> None:
        self.at += 1
        if token.text != "->":
            message = f"The arrow is written ->, not {token.text}."
            self.say("W-ARROW-SPELLING", message, token, ("->",))
        after = self.tokens[self.at]
        if extra and (after.kind in STARTS or after.kind == "arrow"):
            self.say("W-ARROW-EXTRA", "An arrow too many.", token)

    def _done_in_sequence(self, token: Token, linked: bool, closers: tuple[str, ...]) -> None:
        """`done` where a step could stand: a no-op at the very end, otherwise a mistake."""
        self.at += 1
        end = self.at
        while self.tokens[end].kind == "arrow":
            end += 1
        at_end = self.tokens[end].kind == "end" or (not closers and end == self.at)
        if linked and self.depth == 0 and at_end:
            self.at = end
            self._spelt_done(token)
            self.say("W-DONE-END", "`-> done` at the end does nothing.", token)
            return
        message = "`done` is a branch of a condition, or the very end of a workflow."
        self.say("E-DONE-PLACE", message, token, _ATOM)

    def _stray(self, token: Token, steps: list[Node], linked: bool) -> bool:
        """A token that no sequence holds: say so, step over it; whether a step may come next."""
        if token.kind in ("?", ":") and steps and isinstance(steps[-1], Cond):
            message = "A condition inside another needs parentheses around it."
            self.say("E-COND-NESTED", message, token, ("->", "( ... )"))
        else:
            self.unexpected(_ATOM if linked else ("->", "*", "?"), "here")
        self.at += 1
        return linked or token.text == ";"

    # --- steps ------------------------------------------------------------------------------

    def _step(self) -> Node | None:
        start = self.tokens[self.at].start
        node = self._repetition()
        if node is None or self.tokens[self.at].kind != "?":
            return node
        question = self.tokens[self.at]
        self.at += 1
        fail = self._branch()
        passed: Node | Done | None = DONE
        if self.tokens[self.at].kind == ":" or self._otherwise():
            self.at += 1
            passed = self._branch()
        else:
            message = "Without `:`, nothing is done when the check passes."
            self.say("W-COND-ELSE", message, question, (": done",))
        return self._cond(node, fail or DONE, passed or DONE, question, start)

    def _otherwise(self) -> bool:
        """Whether `else` stands here for the colon of a condition."""
        is_else = self.spells(self.at, ("else", "otherwise"))
        if is_else:
            token = self.tokens[self.at]
            self.say("W-SIGN-SPELLING", f"It is written :, not {token.text}.", token, (":",))
        return is_else

    def _cond(
        self, check: Node, fail: Node | Done, passed: Node | Done, at: Token, start: int
    ) -> Node:
        if fail is DONE and passed is DONE:
            self.say("W-COND-EMPTY", "Both branches are `done`.", at, ("an operator",))
        elif fail is DONE:
            message = "`done` stands first; the other branch runs when the check fails."
            self.say("W-COND-POLARITY", message, at)
            fail, passed = passed, fail
        return Cond(check, fail, passed, (start, self.tokens[self.at - 1].end))

    def _branch(self) -> Node | Done | None:
        token = self.tokens[self.at]
        if token.kind == "word" and token.text.lower() in DONE_WORDS:
            self.at += 1
            self._spelt_done(token)
            return DONE
        if self.begins(token):
            return self._repetition()
        self.unexpected(("done", *_ATOM), "as a branch")
        if token.kind in ("arrow", "times", "int", "string", "other"):
            self.at += 1
            return self._branch()
        return None

    def _spelt_done(self, token: Token) -> None:
        if token.text != "done":
            message = f"It is written done, not {token.text}."
            self.say("W-DONE-SPELLING", message, token, ("done",))

    def _repetition(self) -> Node | None:
        first = self.tokens[self.at]
        times = None
        if first.kind == "int":
            times = self.times(first, self.at + 2)
        node = self._atom()
        sign = self.tokens[self.at]
        if node is not None and times is None and sign.kind in MAY_COUNT:
            counted = self.count()
            if counted is not None:
                times = self.times(*counted)
            elif sign.kind == "times":
                self.at += 1
                self.unexpected(("a number from 1 to 5",), "after `*`")
        if node is None or times is None:
            return node
        return Repeat(node, times, (first.start, self.tokens[self.at - 1].end))

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
        node = self._group() if token.kind == "(" else self._list(token)
        self.depth -= 1
        return node

    def _op(self, token: Token) -> Node | None:
        name, words = token.text, 1
        if name not in self.operators:
            name, words = self.resolved(token)
        elif self.tokens[self.at + 1].kind == "word":
            name, words = self.joined() or (name, 1)
        self.at += words
        span = (token.start, self.tokens[self.at - 1].end)
        instruction = ""
        if self.tokens[self.at].kind == "(" and self.tokens[self.at + 1].kind == "string":
            instruction = unquote(self.tokens[self.at + 1].text)
            self.at += 2
            self._close("(")
            span = (token.start, self.tokens[self.at - 1].end)
        return Op(name, instruction, span) if name else None

    def _group(self) -> Node | None:
        node = self._seq((")",), "these parentheses")
        self._close("(")
        return node

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
        span: Span = (opened.start, self.tokens[self.at - 1].end)
        return ListOf(tuple(branches), span) if branches else None

    def _branches(self) -> tuple[Node, ...]:
        """One item of a list; `X * n` without parentheses stands for n branches."""
        first = self.at
        node = self._seq((",", "]"), "this place of the list")
        if node is None:
            return ()
        while self.tokens[first].kind == "arrow":
            first += 1
        # A loop in parentheses begins behind the item that holds it.
        if isinstance(node, Repeat) and node.span[0] == self.tokens[first].start:
            return self._copies(node, self.tokens[first])
        return (node,)

    def _copies(self, node: Repeat, token: Token) -> tuple[Node, ...]:
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
        elif token.kind == "end":
            self.say("W-CLOSE", f"A {closer} is missing at the end.", token, (closer,))
        else:
            self.unexpected((closer,), "here")


def read(text: str, operators: Operators) -> Syntax:
    """Read a text that is nothing but a workflow."""
    return Parser(text, operators).workflow()
