"""Verdicts on programs: tests are checked here, using the values that a sandbox returned.

A sandbox receives only the calls of the tests, not the expected values. For each call, the sandbox
returns a plain value as a string, or the name of an exception (`Outcome`). The values are compared
in this process, so the program's code cannot influence the comparison. An object that claims to
equal everything is not accepted because it cannot be written as a literal, and printing "passed"
has no effect. `aflowgym.answers.assertions` reads the tests of a data set.

Returned values are compared by Python's rules for plain data. A test fails if its assertion would
raise an error, for example by subtracting a number from a string.
"""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from aflowgym.answers.answer import RIGHT, Verdict, wrong
from aflowgym.answers.literals import MAX_LITERAL, hashable, parse_program, read_literal
from aflowgym.remembering import remembered

Form = Literal["==", "is", "abs <", "abs <=", "isclose", "true", "false"]


def _listed(value: Any = ()) -> list[Any]:
    if isinstance(value, set | frozenset):
        raise ValueError("a set has no order")
    return list(value)


VIEWS: Final[Mapping[str, Callable[..., Any]]] = {
    "list": _listed,
    "tuple": lambda value=(): tuple(_listed(value)),
    "sorted": sorted,
    "set": lambda value=(): set(hashable(value)),
}
"""Functions that a test may apply to the returned value before it compares, by name."""
# The second form skips tildes that open nothing, together with the others on their line. Otherwise
# the same line would be scanned for each of them. Backquotes end such a line by themselves.
_FENCE: Final = re.compile(
    r"(?:```|~~~)[^\n`]*+\n(?P<block>.*?)(?:```|~~~|\Z)|~~~[^\n`]*+", re.DOTALL
)
_BEGINS: Final = re.compile(r"^(?:(?:def|class|import) \w|from \S+ import |@\w)", re.M)
_MOST_TRIES: Final = 12


@dataclass(frozen=True)
class CodeTest:
    """A test: a call and its expected value. Values are strings that contain Python literals.

    Attributes:
        function: Name of the function to call.
        arguments: Positional arguments, as a tuple.
        keywords: Keyword arguments, as a dict.
        expected: The value that the call must return.
        form: How the returned value is compared with `expected`.
        tolerance: Maximum absolute difference for the forms "abs <", "abs <=" and "isclose".
        relative: Largest relative difference, in "isclose".
        view: Name of the function in `VIEWS` that is applied to the returned value first.
    """

    function: str
    arguments: str
    expected: str
    keywords: str = "{}"
    tolerance: float = 0.0
    form: Form = "=="
    relative: float = 0.0
    view: str = ""

    def call(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return new copies of the arguments, which a solution can change."""
        return read_literal(self.arguments), read_literal(self.keywords)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one call in the sandbox.

    Attributes:
        value: The returned value as a literal, as `repr` writes plain data; empty after an error.
        error: The exception with its message and line number, or one of `timeout`, `memory`,
            `disk`, `no_literal`, `too_large`, `exit` and `crash`; empty if there was no error.
    """

    value: str = ""
    error: str = ""

    def __str__(self) -> str:
        return f"raised {self.error}" if self.error else f"returned {self.value}"


def judge_code(tests: Sequence[CodeTest], outcomes: Sequence[Outcome]) -> Verdict:
    """Check the recorded outcomes of tests.

    This function raises no exception, whatever the values are.

    Args:
        tests: All the tests, at least one.
        outcomes: Outcomes of the calls, in the order of the tests. Missing outcomes count as failed
            tests.

    Raises:
        ValueError: If there are no tests, or more outcomes than tests.
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
    """Return whether the test passes for an outcome.

    This function raises no exception, whatever the outcome is.
    """
    return not outcome.error and _holds(test, outcome.value, test.expected)


@remembered(4096)
def _holds(test: CodeTest, returned: str, literal: str) -> bool:
    """Return whether a test passes. The result is cached, since returned values often repeat."""
    try:
        value, expected = read_literal(returned), read_literal(literal)
        if test.view:
            value = VIEWS[test.view](value)
        match test.form:
            case "is":  # `1` is not `True`, although they are equal
                return type(value) is type(expected) and bool(value == expected)
            case "abs <":
                return bool(abs(value - expected) < test.tolerance)
            case "abs <=":
                return bool(abs(value - expected) <= test.tolerance)
            case "isclose":
                return math.isclose(value, expected, rel_tol=test.relative, abs_tol=test.tolerance)
            case "true" | "false":
                return bool(value) is (test.form == "true")
        return bool(value == expected)
    # The assertion would have raised an exception, too.
    except (TypeError, ValueError, ArithmeticError):
        return False


def extract_code(text: str, entry_point: str) -> str | None:
    """Return the program in a model's output.

    The program is the last fenced block that defines the function, or else the entire output. If
    neither of them is a valid program, an indented block (as in a list) or a program between lines
    of prose is used.

    Returns:
        The source code, which can be parsed and defines the function at top level, or None if no
        such program was found.
    """
    blocks = _blocks(text)[::-1] or [text]
    program = next((block for block in blocks if _defines(block, entry_point)), None)
    if program is not None or entry_point not in text:
        return program
    fenced = blocks != [text]
    tried = map(textwrap.dedent, blocks[:_MOST_TRIES]) if fenced else [_between_prose(text)]
    return next((each for each in tried if _defines(each, entry_point)), None)


def _blocks(text: str) -> list[str]:
    """Return the fenced blocks of a string. A block that is not closed extends to the end."""
    return [each for match in _FENCE.finditer(text) if (each := match["block"]) is not None]


def _between_prose(text: str) -> str:
    """Return the longest program that parses, from the first line that can begin one."""
    begin = _BEGINS.search(text[:MAX_LITERAL])
    if begin is None:
        return ""
    lines = text[begin.start() : MAX_LITERAL].split("\n")
    for _ in range(_MOST_TRIES):
        source = "\n".join(lines) + "\n"
        try:
            parse_program(source)
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
        body = parse_program(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == entry_point for node in body)
