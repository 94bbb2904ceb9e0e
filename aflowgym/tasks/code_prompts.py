"""Read code from the prompt of a code problem: examples, and the code before the function.

Prompts like those of HumanEval (Chen et al. 2021, arXiv:2107.03374) contain examples in many forms:

    f(1, 2) == 3           f(1, 2) should return 3.                       >>> f(1, 2)
    f(1, 2) ➞ 3            f(1, 2)  # returns 3                           3

An example is used only if the arguments and the value are literals. An example is dropped if it
contradicts the hidden tests: if it has a different value for the same arguments, a different number
of arguments, or a value of a type that the function never returns. Some prompts contain such
mistakes, and a public test that a correct program fails would be worse than no test. No code is
executed. Each scan starts at the end of the previous one, so the time is linear in the length of
the prompt.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Number
from typing import Any, Final, NamedTuple

from aflowgym.answers.assertions import UnsupportedTest, read_tests
from aflowgym.answers.code import CodeTest, Outcome, passes
from aflowgym.answers.literals import parse_program, read_literal

_PROMPT: Final = r"(?P<doctest>>>>[ \t]*)?"
_ANY_CALL: Final = rf"^[ \t]*(?:[*-][ \t]+)?{_PROMPT}(?:assert[ \t]+)?(?P<name>[A-Za-z_]\w*)\("
_LINES: Final = re.compile(r"\r\n|\r|\n")
_GIVES: Final = re.compile(
    r"[ \t]*(?:\#[ \t]*)?(?:==?>|===?|=|-+>|➞|→|⇒|"
    r"(?:(?:should|will|must|would)[ \t]+)?(?:return|be|give|equal|output|yield)s?\b"
    r"|is\b|evaluates[ \t]+to\b)[ \t]*:?[ \t]*"
)
_ATOM: Final = re.compile(
    r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?(?!\w)|(?:[Tt]rue|[Ff]alse|[Nn]one|null)\b"
)
_SPELLED: Final = {"true": "True", "false": "False", "none": "None", "null": "None"}
_IN_BRACKETS: Final = re.compile(r"[()\[\]{}'\"]|\n[ \t]*\n")
_QUOTED: Final = {
    "'": re.compile(r"'(?:[^'\\\n]|\\.)*+'?"),
    '"': re.compile(r'"(?:[^"\\\n]|\\.)*+"?'),
}
_SUM: Final = re.compile(r"[ \t]*[-+*/][-+*/\d. \t()]*=[ \t]*")
_ENDS: Final = re.compile(r"""[ \t]*(?:[.,;!]?[ \t]*(?:$|'''|\"{3})|[.,;][ \t]|\#|\(|//)""", re.M)
_COMMENT: Final = re.compile(r"[ \t]*(?:\#[^\n]*)?\n[ \t]*")
_BLANK: Final = re.compile(r"[ \t]+(?=[^ \t\n])")
_NEAR: Final = ("abs <", "abs <=", "isclose")
_OWN: Final = frozenset(dir(builtins))


class Literal(NamedTuple):
    """The literal at a position in a string ("" if there is none), and the index of its end."""

    text: str
    end: int


def setup(prompt: str, entry_point: str) -> str:
    """Return the code that precedes the function in a prompt: imports, constants, other functions.

    >>> setup("from math import pi\\n\\ndef area(r):\\n    '''The area.'''\\n", "area")
    'from math import pi'
    """
    function = _function(prompt, entry_point)
    if function is None:
        return ""
    first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
    return "\n".join(_LINES.split(prompt)[: first - 1]).strip()


def examples(prompt: str, entry_point: str, tests: Sequence[CodeTest]) -> tuple[CodeTest, ...]:
    """Return the examples of a prompt as tests, without examples that contradict the hidden tests.

    >>> (example,) = examples("def f(n):\\n    '''Twice n: f(2) -> 4.'''\\n", "f", ())
    >>> example.arguments, example.expected
    ('(2,)', '4')
    """
    function = _function(prompt, entry_point)
    names = [each.arg for each in function.args.args] if function is not None else []
    shown = [*_calls(prompt, rf"{_PROMPT}\b{re.escape(entry_point)}\(", entry_point)]
    if not shown:  # some prompts call their function by another name
        others = [*_calls(prompt, _ANY_CALL, entry_point)]
        shown = [each for each in others if _size(each) == len(names)]
    same = {(each.arguments, each.keywords): each for each in tests}
    sizes = set(map(_size, tests))
    kinds = {_kind(_read(each.expected)) for each in tests} | {_kind(None)}
    forms = {(each.form, each.tolerance, each.relative) for each in tests}
    form, tolerance, relative = forms.pop() if len(forms) == 1 else ("==", 0.0, 0.0)
    found: list[CodeTest] = []
    for example in shown:
        hidden = same.get((example.arguments, example.keywords))
        if hidden is not None:
            found += [hidden] if passes(hidden, Outcome(example.expected)) else []
        elif not tests or (_size(example) in sizes and _kind(_read(example.expected)) in kinds):
            near = replace(example, form=form, tolerance=tolerance, relative=relative)
            found.append(near if form in _NEAR else example)  # as tolerant as the hidden tests
    return tuple(dict.fromkeys(found))


def _read(text: str) -> Any:
    """Return the value of a literal, or None if it is too large to be parsed."""
    try:
        return read_literal(text)
    except ValueError:
        return None


def _size(test: CodeTest) -> int:
    """Return the number of arguments in a call, or -1 if they are too large to be parsed."""
    arguments = _read(test.arguments)
    return -1 if arguments is None else len(arguments) + len(_read(test.keywords) or ())


def _kind(value: Any) -> type:
    """Return the type of a value. All numbers have the same type."""
    return Number if isinstance(value, Number) else type(value)


def _calls(prompt: str, pattern: str, entry_point: str) -> Iterator[CodeTest]:
    """Yield calls with the text of their values, which follows on the same or the next line."""
    search = re.compile(pattern, re.M)
    place = 0
    while call := search.search(prompt, place):
        arguments = _literal(prompt, call.end() - 1)
        place = arguments.end
        if not arguments.text or call.groupdict().get("name") in _OWN:
            continue
        value = _value(prompt, place, call["doctest"] is not None)
        place = max(place, value.end)
        if value.text:
            yield from _test(entry_point, arguments.text, value.text)


def _value(prompt: str, place: int, doctest: bool) -> Literal:
    """Return the expected value of a call."""
    gives = _GIVES.match(prompt, place)
    if gives is None and doctest:
        gives = _COMMENT.match(prompt, place) or _BLANK.match(prompt, place)
    if gives is None:
        return Literal("", place)
    value = _literal(prompt, gives.end())
    if value.text and (rest := _SUM.match(prompt, value.end)):  # `19 - 5 - 6 = 8`
        value = _literal(prompt, rest.end())
    return value if value.text and _ENDS.match(prompt, value.end) else Literal("", value.end)


def _literal(prompt: str, place: int) -> Literal:
    """Return the literal that begins at an index. Its `end` is where the scan ended."""
    atom = _ATOM.match(prompt, place)
    if atom is not None:
        return Literal(_SPELLED.get(atom[0].lower(), atom[0]), atom.end())
    first = prompt[place : place + 1]
    if first in _QUOTED:
        quoted = _QUOTED[first].match(prompt, place)
        return _close(prompt, place, quoted.end() if quoted else place, first)
    return _group(prompt, place) if first and first in "([{" else Literal("", place)


def _group(prompt: str, place: int) -> Literal:
    """Return the text from a bracket to the matching one. An empty line ends the search."""
    depth, end = 0, place
    while match := _IN_BRACKETS.search(prompt, end):
        sign, end = match[0], match.end()
        if sign in _QUOTED:
            quoted = _QUOTED[sign].match(prompt, match.start())
            end = quoted.end() if quoted else end
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        else:
            return Literal("", end)
        if not depth:
            return Literal(prompt[place:end], end)
    return Literal("", len(prompt))


def _close(prompt: str, place: int, end: int, mark: str) -> Literal:
    whole = end - place > 1 and prompt[end - 1] == mark
    return Literal(prompt[place:end] if whole else "", end)


def _test(entry_point: str, arguments: str, value: str) -> tuple[CodeTest, ...]:
    try:
        return read_tests(f"assert {entry_point}{arguments} == {value}", entry_point)
    except UnsupportedTest:
        return ()


def _function(prompt: str, entry_point: str) -> ast.FunctionDef | None:
    """Return the definition of the function in the prompt, or None if there is none."""
    try:
        body = parse_program(prompt).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    named = (each for each in body if isinstance(each, ast.FunctionDef))
    return next((each for each in named if each.name == entry_point), None)
