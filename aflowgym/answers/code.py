"""Verdicts on programs: all tests, judged here from the values that were returned elsewhere.

A test is an assertion over literals, `assert f([1, 2]) == 3` or another form of `Relation`, read
with `ast` and never executed. A sandbox is given the calls only; it returns, for each, the text of
a plain value or the name of what was raised (`Outcome`), and the comparison is made in this
process. So nothing that the program defines takes part in it: an object that equals everything has
no literal, and printing "passed" passes nothing. An assertion of another form is refused
(`UnsupportedTest`), since a solution that was not held against all tests has not passed them.

A returned value is compared as Python would decide it of plain data. What would raise an error in
the assertion (the distance of a text and a number) is an assertion that fails. In each form the
literal itself passes. So a form that only rules something out (`!=`, `<`, `in`) is none of them:
what a test expects is shown to models, and stands for a right answer elsewhere.
"""

from __future__ import annotations

import ast
import functools
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from aflowgym.answers.literals import MAX_LITERAL, literal_value, parse_program, read_literal
from aflowgym.answers.verdict import RIGHT, Verdict, wrong
from aflowgym.remembering import remembered

Form = Literal["==", "is", "abs <", "abs <=", "isclose", "true", "false"]
_DISTANCES: Final[dict[type[ast.cmpop], Form]] = {ast.Lt: "abs <", ast.LtE: "abs <="}
#: What `math.isclose` takes if it is not told.
_RELATIVE: Final = 1e-9


class Relation(NamedTuple):
    """The form of an assertion.

    Attributes:
        form: What the value has to be to the literal.
        call: The side with the call.
        literal: The other side; True or False where there is none.
        tolerance: How far from each other numbers may be.
        relative: The same as a fraction of the larger one.
    """

    form: Form
    call: ast.expr
    literal: ast.expr
    tolerance: float = 0.0
    relative: float = 0.0


def read_relation(assertion: ast.expr, is_call: Callable[[ast.expr], bool]) -> Relation:
    """The relation that an assertion states of a call.

    Raises:
        ValueError: It is of another form.
    """
    match assertion:
        case ast.Compare(
            left=ast.Call(
                func=ast.Name(id="abs"), args=[ast.BinOp(left, ast.Sub(), right)], keywords=[]
            ),
            ops=[ast.Lt() | ast.LtE() as sign],
            comparators=[bound],
        ):
            return Relation(_DISTANCES[type(sign)], *_sides(left, right, is_call), _bound(bound))
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return Relation("==", *_sides(left, right, is_call))
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[right]):
            sides = _sides(left, right, is_call)
            if isinstance(sides[1], ast.Constant):  # any other literal is an object of its own
                return Relation("is", *sides)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="math"), attr="isclose") | ast.Name(id="isclose"),
            args=[left, right],
            keywords=named,
        ):
            return _close(*_sides(left, right, is_call), named)
        case ast.UnaryOp(op=ast.Not(), operand=call) if is_call(call):
            return Relation("false", call, ast.Constant(value=False))
        case call if is_call(call):
            return Relation("true", call, ast.Constant(value=True))
    raise ValueError("an assertion of another form")


def _sides(
    left: ast.expr, right: ast.expr, is_call: Callable[[ast.expr], bool]
) -> tuple[ast.expr, ast.expr]:
    """The side with the call, and the other."""
    if not is_call(left):
        left, right = right, left
    if not is_call(left):
        raise ValueError("no side is a call of the function")
    return left, right


def _close(call: ast.expr, literal: ast.expr, named: list[ast.keyword]) -> Relation:
    bounds = {each.arg: _bound(each.value) for each in named}
    if not bounds.keys() <= {"rel_tol", "abs_tol"}:
        raise ValueError("isclose with other arguments")
    absolute, relative = bounds.get("abs_tol", 0.0), bounds.get("rel_tol", _RELATIVE)
    return Relation("isclose", call, literal, absolute, relative)


def _bound(node: ast.expr) -> float:
    """A bound that is written as a number; raises ValueError for anything else."""
    match node:
        case ast.Constant(value=int() | float() as bound):
            return float(bound)
    raise ValueError("the bound is no number")


def holds(form: Form, value: Any, expected: Any, tolerance: float, relative: float) -> bool:
    """Whether a value is to the expected one as a form of assertions says; both are plain data.

    Raises nothing, however the two differ.
    """
    try:
        match form:
            case "is":  # `1` is not `True`, though it equals it
                return type(value) is type(expected) and bool(value == expected)
            case "abs <":
                return bool(abs(value - expected) < tolerance)
            case "abs <=":
                return bool(abs(value - expected) <= tolerance)
            case "isclose":
                return math.isclose(value, expected, rel_tol=relative, abs_tol=tolerance)
            case "true" | "false":
                return bool(value) is (form == "true")
        return bool(value == expected)
    except (TypeError, ValueError, OverflowError):  # as the assertion would have raised
        return False


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
        form: What the value has to be to `expected`; see `Relation`.
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
    """The outcome of one call in the sandbox.

    Attributes:
        value: The text of the value it returned, as `repr` writes plain data; empty with an error.
        error: What was raised, with its message and line, or `timeout`, `memory`, `disk`,
            `no_literal`, `too_large`, `exit` or `crash`; empty if none.
    """

    value: str = ""
    error: str = ""

    def __str__(self) -> str:
        return f"raised {self.error}" if self.error else f"returned {self.value}"


def read_tests(source: str, entry_point: str) -> tuple[CodeTest, ...]:
    """The tests that a text of assertions holds, in order.

    Args:
        source: Assertions, bare or inside functions (`def check(candidate): ...`).
        entry_point: The function under test; `candidate` is another name for it.

    Raises:
        UnsupportedTest: An assertion is not over literals, or there is none at all.
    """
    try:
        tree = parse_program(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise UnsupportedTest(f"the tests are no Python: {problem}") from problem
    assertions = sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.Assert)),
        key=lambda node: (node.lineno, node.col_offset),
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try):
            raise UnsupportedTest(f"line {node.lineno} of the tests is no assertion over literals")
    tests = tuple(_test(node, entry_point) for node in assertions if not _is_void(node))
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
    """Whether the test holds for the value that came back, as Python compares plain data."""
    if outcome.error:
        return False
    return _holds(outcome.value, test.expected, test.form, test.tolerance, test.relative)


@remembered(4096)
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
    program = next((block for block in blocks if _defines(block, entry_point)), None)
    if program is not None or entry_point not in text:
        return program
    fenced = blocks != [text]
    tried = map(textwrap.dedent, blocks[:_MOST_TRIES]) if fenced else [_between_prose(text)]
    return next((each for each in tried if _defines(each, entry_point)), None)


def _blocks(text: str) -> list[str]:
    """The fenced blocks of a text; one that nothing closes goes on to the end."""
    return [each for match in _FENCE.finditer(text) if (each := match["block"]) is not None]


def _between_prose(text: str) -> str:
    """From the first line that a program may begin with, as much as parses."""
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
        message = f"this assertion is not over literals: {_quote(node)}"
        raise UnsupportedTest(message) from problem
    keywords = ", ".join(f"{name!r}: {ast.unparse(value)}" for name, value in named.items())
    texts = (ast.unparse(arguments), ast.unparse(literal), f"{{{keywords}}}")
    return CodeTest(entry_point, *texts, tolerance, form, relative)


def _quote(node: ast.Assert) -> str:
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
