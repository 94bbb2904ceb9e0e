"""Read the tests of a data set, converting assertions to calls with expected return values.

The tests of a problem are a small program: assertions such as `assert f([1, 2]) == 3`, possibly in
a function or in a loop over a range, with constant or computed values (`3 * 19`, `sum(numbers)`).
The reader evaluates this program with a small set of operations on plain data and a limit on the
number of steps. No code is executed. Random numbers (`random.randint`) come from a generator with a
fixed seed.

The reader rejects assertions that cannot be checked from the returned value alone. The reader also
rejects assertions that only exclude values (`!=`, `<`, `in`). As a result, every supported
assertion holds for its expected value.
"""

from __future__ import annotations

import ast
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from aflowgym.answers.code import VIEWS, CodeTest, Form
from aflowgym.answers.literals import MAX_LITERAL, hashable, literal_value, parse_program

_MOST_STEPS: Final = 200_000
_LONGEST_RANGE: Final = 10_000
_MOST_BITS: Final = 4_096
#: Relative tolerance of `math.isclose` if none is given.
_RELATIVE: Final = 1e-9
_NO_PYTHON: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
_UNREADABLE: Final = (ValueError, TypeError, ArithmeticError, LookupError, RecursionError)
_DISTANCES: Final[dict[type[ast.cmpop], Form]] = {ast.Lt: "abs <", ast.LtE: "abs <="}


def _power(base: Any, exponent: Any) -> Any:
    bits = base.bit_length() if isinstance(base, int) else 1
    if bits * abs(exponent) > _MOST_BITS:
        raise ValueError("a power is too large")
    return base**exponent


def _product(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, int):
        if len(left) * right > _LONGEST_RANGE:
            raise ValueError("a text is too long")
        return left * right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left * right
    raise ValueError("a product of unsupported values")


def _remainder(left: Any, right: Any) -> Any:
    if not isinstance(left, int | float):
        raise ValueError("a format")
    return left % right


def _range(*bounds: int) -> list[int]:
    numbers = range(*bounds)
    if len(numbers) > _LONGEST_RANGE:
        raise ValueError("a range is too long")
    return list(numbers)


_OPERATORS: Final[dict[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: _product, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: _remainder, ast.Pow: _power, ast.USub: operator.neg,
    ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.And: lambda *values: all(values), ast.Or: lambda *values: any(values),
}  # fmt: skip
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "range": _range, "sum": sum, "len": len, "abs": abs, "min": min, "max": max,
    "str": lambda number: {int: str, float: str}[type(number)](number),
    "int": int, "float": float, "round": round, **VIEWS,
}  # fmt: skip
_SEQUENCES: Final = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}


class UnsupportedTest(ValueError):
    """Raised for tests that cannot be checked from returned values; the message quotes the code."""


def read_tests(source: str, entry_point: str) -> tuple[CodeTest, ...]:
    """Return the tests in the source of assertions, in order.

    Args:
        source: Assertions, bare or inside functions (`def check(candidate): ...`).
        entry_point: Name of the function under test. `candidate` is another name for this function.

    Raises:
        UnsupportedTest: If an assertion has an unsupported form, or there are no assertions.

    >>> read_tests("for n in range(2):\\n    assert double(n) == 2 * n", "double")[1].expected
    '2'
    """
    try:
        body = parse_program(source).body
    except _NO_PYTHON as problem:
        raise UnsupportedTest(f"the tests are not Python: {problem}") from problem
    reader = _Reader(entry_point)
    reader.run(body)
    if not reader.tests:
        raise UnsupportedTest("there is no assertion in the tests")
    return tuple(reader.tests)


class _Reader:
    """The names and tests found so far. `_value` and `_text` count steps to limit the work."""

    def __init__(self, entry_point: str) -> None:
        self._functions = (entry_point, "candidate")
        self.tests: list[CodeTest] = []
        self._values: dict[str, tuple[Any, int]] = {}
        self._random = random.Random(0)
        self._steps = 0

    def run(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            try:
                match statement:
                    case ast.Assert(test=assertion):
                        self._assert(assertion)
                    case ast.FunctionDef(body=inner):
                        self.run(inner)
                    case ast.For(target=target, iter=items, body=inner, orelse=[]):
                        for item in VIEWS["list"](self._value(items)):
                            self._bind(target, item)
                            self.run(inner)
                    case ast.Assign(targets=[target], value=value):
                        self._bind(target, self._value(value))
                    case ast.Import() | ast.ImportFrom() | ast.Pass():
                        pass
                    case ast.Expr(
                        value=ast.Constant() | ast.Name() | ast.Call(func=ast.Name(id="check"))
                    ):
                        pass
                    case _:
                        raise ValueError("an unsupported statement")
            except UnsupportedTest:
                raise
            except _UNREADABLE as problem:
                raise UnsupportedTest(
                    f"this {'assertion' if isinstance(statement, ast.Assert) else 'line'} is not"
                    f" over literals: {_quote(statement)}"
                ) from problem

    def _assert(self, node: ast.expr) -> None:
        """Read one assertion. Raise ValueError if it has an unsupported form."""
        match node:
            case ast.Constant(value=True):  # a placeholder that tests nothing
                return
            case ast.Compare(
                left=ast.Call(
                    func=ast.Name(id="abs") | ast.Attribute(attr="fabs"),
                    args=[ast.BinOp(left, ast.Sub(), right)],
                    keywords=[],
                ),
                ops=[ast.Lt() | ast.LtE() as sign],
                comparators=[bound],
            ):
                self._add(_DISTANCES[type(sign)], left, right, float(self._value(bound)))
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                self._add("==", left, right)
            case ast.Compare(left=left, ops=[ast.Is()], comparators=[right]):
                # Any literal other than a constant is a separate object.
                if not isinstance(left, ast.Constant) and not isinstance(right, ast.Constant):
                    raise ValueError("identity with an object")
                self._add("is", left, right)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="math"), attr="isclose")
                | ast.Name(id="isclose"),
                args=[left, right],
                keywords=named,
            ):
                bounds = {each.arg: float(self._value(each.value)) for each in named}
                relative = bounds.pop("rel_tol", _RELATIVE)
                absolute = bounds.pop("abs_tol", 0.0)
                if bounds:
                    raise ValueError("isclose with unsupported arguments")
                self._add("isclose", left, right, absolute, relative)
            case ast.UnaryOp(op=ast.Not(), operand=call):
                self._add("false", call, ast.Constant(False))
            case _:
                self._add("true", node, ast.Constant(True))

    def _add(
        self,
        form: Form,
        left: ast.expr,
        right: ast.expr,
        tolerance: float = 0.0,
        relative: float = 0.0,
    ) -> None:
        """Add a test that compares the side with the function call with the other side."""
        (view, call), (other_view, other) = self._call(left), self._call(right)
        if call is None:
            (view, call), other, right = (other_view, other), call, left
        if call is None or (view and form != "=="):
            raise ValueError("no call of the function")
        if other is not None:
            # HumanEval compares some results with those of a reference function, which has the same
            # name.
            same = ast.dump(ast.List(call.args)) == ast.dump(ast.List(other.args))
            if same and form == "==" and ast.unparse(left) != ast.unparse(right):
                return
            raise ValueError("both sides call the function")
        named = {each.arg: self._value(each.value) for each in call.keywords if each.arg}
        if len(named) != len(call.keywords):
            raise ValueError("its arguments are not literals")
        arguments = tuple(self._value(argument) for argument in call.args)
        texts = (self._text(arguments), self._text(self._value(right)), self._text(named))
        function = self._functions[0]
        self.tests.append(CodeTest(function, *texts, tolerance, form, relative, view))

    def _call(self, node: ast.expr) -> tuple[str, ast.Call | None]:
        """Return the function call on one side of an assertion, and the view of its value."""
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in self._functions:
                return "", node
            case ast.Call(
                func=ast.Name(id=view), args=[ast.Call(func=ast.Name(id=name)) as call], keywords=[]
            ) if view in VIEWS and name in self._functions:
                return view, call
        return "", None

    def _bind(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                before = self._steps
                self._text(value)
                self._values[name] = value, self._steps - before
            case ast.Tuple(elts=targets) if len(targets) == len(value):
                for each, part in zip(targets, value, strict=True):
                    self._bind(each, part)
            case _:
                raise ValueError("an unsupported target")

    def _value(self, node: ast.expr) -> Any:
        """Return the value of an expression, or raise one of `_UNREADABLE`."""
        self._spend(1)
        match node:
            case ast.Name(id=name) if name in self._values:
                value, size = self._values[name]
                self._spend(size)
                return value
            case ast.Constant(value=str() | bytes() as text):
                self._spend(len(text) // 100)
                return text
            case ast.List() | ast.Tuple() | ast.Set():
                return VIEWS[_SEQUENCES[type(node)]]([self._value(item) for item in node.elts])
            case ast.Dict(keys=keys, values=values) if None not in keys:
                read = hashable(self._value(key) for key in keys if key)
                return dict(zip(read, map(self._value, values), strict=True))
            case ast.UnaryOp(op=sign, operand=operand):
                return _OPERATORS[type(sign)](self._value(operand))
            case (
                ast.BinOp(left=left, op=sign, right=right)
                | ast.Compare(left=left, ops=[sign], comparators=[right])
                | ast.BoolOp(op=sign, values=[left, right])
            ):
                return _OPERATORS[type(sign)](self._value(left), self._value(right))
            case (
                ast.ListComp(elt=item, generators=[each])
                | ast.GeneratorExp(elt=item, generators=[each])
            ):
                values = []
                for value in VIEWS["list"](self._value(each.iter)):
                    self._bind(each.target, value)
                    if all(self._value(condition) for condition in each.ifs):
                        values.append(self._value(item))
                return values
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                result = _FUNCTIONS[name](*map(self._value, args))
                self._spend(len(result) if isinstance(result, list | tuple | set) else 0)
                return result
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="random"), attr="randint"), args=[low, high]
            ):
                return self._random.randint(self._value(low), self._value(high))
        return literal_value(node)

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise ValueError("the tests are too long")

    def _text(self, value: Any) -> str:
        """Return a value as a literal. Sets are sorted, so that the text is deterministic."""
        self._spend(1)
        match value:
            case list():
                return f"[{', '.join(map(self._text, value))}]"
            case tuple():
                return f"({', '.join(map(self._text, value))}{',' * (len(value) == 1)})"
            case set() if value:
                return f"{{{', '.join(sorted(map(self._text, value)))}}}"
            case Mapping():
                items = (f"{self._text(key)}: {self._text(each)}" for key, each in value.items())
                return f"{{{', '.join(items)}}}"
            case str() | bytes():
                self._spend(len(value) // 100)
        text = repr(value)
        if len(text) > MAX_LITERAL:
            raise ValueError("a literal is too long")
        return text


def _quote(node: ast.stmt) -> str:
    try:
        return ast.unparse(node)[:200]
    except (ValueError, RecursionError):  # a number is too long to write, or a tree is too deep
        return f"that of line {node.lineno}"
