"""Is this program right? All its tests, judged here from the values that it returned elsewhere.

A test is an assertion over literals, `assert f([1, 2]) == 3` or one of the other forms that
`comparing` knows, read with `ast` and never executed.
A sandbox is given the calls only; it returns, for each, the text of a plain value or the name of
what was raised (`Outcome`), and the comparison is made in this process. So nothing that the program
defines takes part in it: an object that equals everything has no literal, and printing "passed"
passes nothing. An assertion of another form is refused (`UnsupportedTest`), since a solution that
was not held against all tests has not passed them.
"""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aflowgym.answers.comparing import Form, holds, read_relation
from aflowgym.answers.literals import MAX_LITERAL, literal_value, read_literal
from aflowgym.answers.verdict import RIGHT, Verdict, wrong
from aflowgym.remembering import remembered

_REMEMBERED: Final = 2000
# The second form goes past tildes that open nothing, with the others on their line: these would
# each be followed through the same line. Back-quotes end such a line by themselves.
_FENCE: Final = re.compile(
    r"(?:```|~~~)[^\n`]*+\n(?P<block>.*?)(?:```|~~~|\Z)|~~~[^\n`]*+", re.DOTALL
)
_BEGINS: Final = re.compile(r"^(?:(?:def|class|import) \w|from \S+ import |@\w)", re.M)
_MOST_TRIES: Final = 12


class UnsupportedTest(ValueError):
    """An assertion that cannot be judged from a returned value; the message quotes it."""


@dataclass(frozen=True)
class CodeTest:
    """One call and what it must return; all three are texts of literals.

    Attributes:
        function: The name that is called.
        arguments: The positional arguments, as a tuple.
        keywords: The named arguments, as a dict.
        expected: What it must return.
        tolerance: How far from it a number may be, in the forms that are about that.
        form: What the value has to be to `expected`; see `comparing`.
        relative: The tolerance of `isclose` as a fraction.
    """

    function: str
    arguments: str
    expected: str
    keywords: str = "{}"
    tolerance: float = 0.0
    form: Form = "=="
    relative: float = 0.0

    def call(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as values, made anew: what a solution does to them stays with it."""
        return read_literal(self.arguments), read_literal(self.keywords)


@dataclass(frozen=True)
class Outcome:
    """What became of one call in the sandbox.

    Attributes:
        value: The text of the value it returned, as `repr` writes plain data; empty with an error.
        error: What was raised, with its message and line, or `timeout`, `memory`, `disk`,
            `no_literal`, `too_large`, `exit` or `crash`; empty if none.
    """

    value: str = ""
    error: str = ""


def read_tests(source: str, entry_point: str) -> tuple[CodeTest, ...]:
    """The tests that a text of assertions holds, in order.

    Args:
        source: Assertions, bare or inside functions (`def check(candidate): ...`).
        entry_point: The function under test; `candidate` is another name for it.

    Raises:
        UnsupportedTest: An assertion is not over literals, or there is none at all.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise UnsupportedTest(f"the tests are no Python: {problem}") from problem
    found = sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.Assert)),
        key=lambda node: (node.lineno, node.col_offset),
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try):
            raise UnsupportedTest(f"line {node.lineno} of the tests is no assertion over literals")
    tests = tuple(_test(node, entry_point) for node in found if not _is_void(node))
    if not tests:
        raise UnsupportedTest("there is no assertion in the tests")
    return tests


def judge_code(tests: Sequence[CodeTest], outcomes: Sequence[Outcome]) -> Verdict:
    """Judge recorded outcomes, one per test in their order. Never raises for what was returned.

    Args:
        tests: All the tests; at least one.
        outcomes: What became of each call. Those that are missing have failed.

    Raises:
        ValueError: There are no tests, or more outcomes than tests.
    """
    if not tests or len(outcomes) > len(tests):
        raise ValueError(f"{len(outcomes)} outcomes do not fit {len(tests)} tests")
    passed, reason = 0, ""
    for place, test in enumerate(tests):
        outcome = outcomes[place] if place < len(outcomes) else Outcome(error="missing")
        if passes(test, outcome):
            passed += 1
        elif not reason:
            reason = f"test {place + 1} fails" + (f": {outcome.error}" if outcome.error else "")
    return RIGHT if passed == len(tests) else wrong(reason, passed / len(tests))


def passes(test: CodeTest, outcome: Outcome) -> bool:
    """Does the test hold for the value that came back, as Python compares plain data?"""
    if outcome.error:
        return False
    hold = _holds if len(outcome.value) <= _REMEMBERED else _holds.__wrapped__
    return hold(outcome.value, test.expected, test.form, test.tolerance, test.relative)


@functools.lru_cache(maxsize=4096)
def _holds(returned: str, literal: str, form: Form, tolerance: float, relative: float) -> bool:
    """Whether a test holds, remembered: programs return few different values."""
    try:
        value = read_literal(returned)
    except ValueError:
        return False
    if form == "==" and tolerance:
        form = "abs <="
    return holds(form, value, read_literal(literal), tolerance, relative)


def extract_code(text: str, entry_point: str) -> str | None:
    """The program in a text: its last fenced block that defines the function, or the whole text.

    Failing these, a block that is indented as in a list, or a program between lines of prose.

    Returns:
        The source, which parses and defines the function at top level; None if there is none.
    """
    blocks = _blocks(text)[::-1] or [text]
    found = next((block for block in blocks if _defines(block, entry_point)), None)
    if found is not None or entry_point not in text:
        return found
    fenced = blocks != [text]
    tried = map(textwrap.dedent, blocks[:_MOST_TRIES]) if fenced else [_between_prose(text)]
    return next((each for each in tried if _defines(each, entry_point)), None)


def _blocks(text: str) -> list[str]:
    """The fenced blocks of a text; one that nothing closes goes on to the end."""
    return [each for found in _FENCE.finditer(text) if (each := found["block"]) is not None]


def _between_prose(text: str) -> str:
    """From the first line that a program may begin with, as much as parses."""
    begin = _BEGINS.search(text[:MAX_LITERAL])
    if begin is None:
        return ""
    lines = text[begin.start() : MAX_LITERAL].split("\n")
    for _ in range(_MOST_TRIES):
        source = "\n".join(lines) + "\n"
        try:
            ast.parse(source)
        except SyntaxError as problem:
            lines = lines[: max(0, (problem.lineno or 1) - 1)]
        except (ValueError, RecursionError, MemoryError):
            return ""
        else:
            return source
    return ""


@remembered(4096)
def _defines(source: str, entry_point: str) -> bool:
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == entry_point for node in body)


def _test(node: ast.Assert, entry_point: str) -> CodeTest:
    """One assertion as a test; raises `UnsupportedTest` if it is of another form."""
    try:
        form, call, literal, tolerance, relative = read_relation(
            node.test, functools.partial(_is_call, entry_point=entry_point)
        )
        if not isinstance(call, ast.Call) or not _is_call(call, entry_point):
            raise ValueError("there is no call of the function")
        arguments = ast.Tuple(call.args, ast.Load())
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        if None in named:
            raise ValueError("its arguments are not written out")
        for part in (arguments, literal, *named.values()):
            literal_value(part)
    except (ValueError, TypeError, RecursionError) as problem:
        told = f"this assertion is not over literals: {_quoted(node)}"
        raise UnsupportedTest(told) from problem
    keywords = ", ".join(f"{name!r}: {ast.unparse(value)}" for name, value in named.items())
    texts = (ast.unparse(arguments), ast.unparse(literal), f"{{{keywords}}}")
    return CodeTest(entry_point, *texts, tolerance, form, relative)


def _quoted(node: ast.Assert) -> str:
    try:
        return ast.unparse(node)[:200]
    except (ValueError, RecursionError):  # a number too long to write out, too deep a tree
        return f"that of line {node.lineno}"


def _is_call(node: ast.expr, entry_point: str) -> bool:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return named and node.func.id in (entry_point, "candidate")  # type: ignore[attr-defined]


def _is_void(node: ast.Assert) -> bool:
    """`assert True`, which some data sets have as a filler, tests nothing."""
    return isinstance(node.test, ast.Constant) and node.test.value is True
