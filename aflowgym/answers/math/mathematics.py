"""Verdicts on answers to math problems, which are compared by value.

An answer is parsed into numbers, polynomials, lists, tuples, intervals, sets or a word. A quantity
has an exact value (`aflowgym.answers.math.exact`), a unit, and an unknown to which it is assigned
(`x = 5`). Two quantities are equal if their values, units and unknowns are equal. A decimal matches
a different value only in these cases:

| gold              | answer                | correct if                                           |
| ----------------- | --------------------- | ---------------------------------------------------- |
| 1/3, √2, π        | a decimal             | it is the gold value rounded to 4 or more decimals   |
| 1/3, √2, π        | `0.33...`             | the gold value begins with these decimals            |
| any number        | 12 or more decimals   | it agrees to 1e-9, like a printed float              |
| 50, "what percent"| `50` or `50%`         | always; for other questions, 50% is 1/2              |

For example, 99.5 is not 100, and `2√3` is not `2√5`. An expression that is not evaluated, such as
`50-7*4-5*2`, is not an answer (`expression.is_final`). An answer can use a different unit than the
gold answer if the question does not name a unit: `0.5 m` equals `50 cm`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Final, NamedTuple

from aflowgym.answers.answer import RIGHT, Verdict, bare, final_answer, plain, statement_in, wrong
from aflowgym.answers.math import exact
from aflowgym.answers.math.exact import Unreadable
from aflowgym.answers.math.expression import MAX_LENGTH, is_final
from aflowgym.answers.math.math_reading import Quantity, Reading, Several, Word, read_math
from aflowgym.answers.words import (
    PERCENT,
    asked_for,
    asks_percent,
    exchange,
    same_unit,
    units_of,
    words_of,
)
from aflowgym.remembering import remembered

ROUNDED_DECIMALS: Final = 4
PRINTED_DECIMALS: Final = 12
PRINTED_ERROR: Final = 1e-9
_LEAD: Final = re.compile(r"\A(?:so|thus|hence|therefore)\b ?,? ?", re.IGNORECASE)
_CLOSE_BY: Final = re.compile(
    r" ?\((?:or )?(?:about|approximately|approx\.?|roughly|~) ?[^()]*\)\.?\Z"
)
_INTEGRAL: Final = re.compile(r"antiderivative|integral|integrate", re.IGNORECASE)
_CONSTANT: Final = re.compile(r" ?\+ ?[Cc] ?\Z")
_BECAUSE: Final = re.compile(r", (?:since|because|as)\b")
_FUNCTION: Final = re.compile(
    r"(?<![A-Za-z\\])\\?((?:arc)?(?:sin|cos|tan)|cot|sec|csc|ln|log|exp)(?![A-Za-z])"
    r"(?: ?\( ?([A-Za-z]|\d+) ?\))?"
)
_QUOTIENT: Final = re.compile(r"\\frac ?\{([^{}]*)\} ?\{([^{}]*)\}")
_GROUP: Final = re.compile(r"(?<=[\^_])\{(\w)\}")
_IDLE_BLANK: Final = re.compile(r"(?<!\w) | (?!\w)")


def judge_math(gold: str, answer: str, question: str = "") -> Verdict:
    """Compare an answer with the gold answer. Never raises an exception.

    Args:
        gold: The correct answer from the data set.
        answer: Model output that contains a final answer; see `aflowgym.answers.answer`.
        question: The question. The question determines which units and nouns can follow a number,
            and whether a percentage is expected.

    >>> judge_math("0.5", r"\\boxed{\\frac12}").correct, judge_math("100", "99.5").correct
    (True, False)
    """
    nouns = words_of(question)
    bare_gold = _CONSTANT.sub("", gold) if _INTEGRAL.search(question) else gold
    try:
        expected: Reading | None = read_gold(bare_gold, nouns)
    except Unreadable:
        expected = None
    final = final_answer(answer).text
    if not final:
        return wrong("there is no answer")
    reading = _read_answer(final, nouns, question)
    if expected is not None and reading is not None:
        asked = Asked(
            units_of(nouns),
            asked_for(question),
            asks_percent(question),
            question,
        )
        return RIGHT if _same(expected, reading, asked) else wrong("the value differs")
    if len(final) <= MAX_LENGTH and canonical(gold) == canonical(final):
        return RIGHT
    if expected is None:
        return Verdict(None, 0.0, "the gold answer cannot be read")
    return wrong("the answer cannot be read")


def canonical(text: str) -> str:
    """Return the normalized form in which answers that cannot be parsed are compared."""
    spelled = _QUOTIENT.sub(r"(\1)/(\2)", plain(bare(text)))
    spelled = _FUNCTION.sub(r"\1 \2", spelled)
    return _IDLE_BLANK.sub("", " ".join(_GROUP.sub(r"\1", spelled).split()))


@remembered(4096)
def read_gold(text: str, nouns: frozenset[str] = frozenset()) -> Reading:
    """Read a gold answer.

    Raises:
        Unreadable: If the answer has no supported form.
    """
    return read_math(bare(text), nouns)


class Asked(NamedTuple):
    """The requirements of a question on the form of the answer.

    Attributes:
        units: Units in the question.
        wanted: Units in which the question asks for a number.
        percent: Whether the question asks for a percentage.
        question: Text of the question.
    """

    units: frozenset[str]
    wanted: frozenset[str]
    percent: bool
    question: str


def _read_answer(text: str, nouns: frozenset[str], question: str) -> Reading | None:
    """Read an answer, or the statement at the end of its line of prose, or return None."""
    if _INTEGRAL.search(question):
        text = _CONSTANT.sub("", text)
    text = _CLOSE_BY.sub("", _LEAD.sub("", _BECAUSE.split(text, maxsplit=1)[0]))
    exact_, sign, rounded = text.partition("≈")
    read: Reading | None = None
    for part in (exact_, rounded, statement_in(text) or ""):
        try:
            reading = read_math(bare(part), nouns)
        except Unreadable:
            continue
        # In `√2 ≈ 1.41` the exact side is the answer; in `x ≈ 3` it is the other side.
        unknown = isinstance(reading, Quantity) and exact.approximate(dict(reading.value)) is None
        if not isinstance(reading, Word) and not (sign and part is exact_ and unknown):
            return reading
        read = read or reading
    return read


def _same(gold: Reading, answer: Reading, asked: Asked) -> bool:
    if isinstance(gold, Quantity) and isinstance(answer, Quantity):
        return _same_quantity(gold, answer, asked)
    if isinstance(gold, Several) and isinstance(answer, Several):
        if gold.brackets == "()" and not answer.brackets:
            answer = _as_tuple(answer)
        if gold.brackets != answer.brackets or len(gold.items) != len(answer.items):
            return False
        if gold.brackets:
            pairs = zip(gold.items, answer.items, strict=True)
            return all(_same(one, other, asked) for one, other in pairs)
        return _same_items(gold, answer, asked)
    return gold == answer


def _as_tuple(answer: Several) -> Several:
    """Return `x = 2, y = 3` as the tuple (2, 3)."""
    names = [item.name for item in answer.items if isinstance(item, Quantity)]
    if len(names) != len(answer.items) or not all(names) or names != sorted(set(names)):
        return answer
    return Several("()", answer.items)


def _same_items(gold: Several, answer: Several, asked: Asked) -> bool:
    """Return whether two lists or sets have the same items, in any order."""
    left = list(answer.items)
    for item in gold.items:
        match = next((other for other in left if _same(item, other, asked)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _same_quantity(gold: Quantity, answer: Quantity, asked: Asked) -> bool:
    if gold.name and answer.name and gold.name != answer.name:
        return False
    if not is_final(gold.form, answer.form, asked.question):
        return False
    if answer.unit == PERCENT != gold.unit and asked.wanted and not asked.percent:
        return False
    gold, answer = _as_share(gold, asked.percent), _as_share(answer, asked.percent)
    if not same_unit(gold.unit, answer.unit, asked.units, asked.wanted):
        ratio = exchange(gold.unit, answer.unit, asked.units)
        exchanged = exact.multiply(dict(answer.value), exact.number(ratio)) if ratio else None
        return exchanged == dict(gold.value)
    return gold.value == answer.value or _rounds_to(gold, answer)


def _as_share(quantity: Quantity, percent: bool) -> Quantity:
    """Return a percentage in the form that the question expects.

    If the question asks for a percentage, a bare number is interpreted as one. Otherwise 50% is the
    number 1/2.
    """
    if quantity.unit != PERCENT:
        return quantity
    if percent:
        return replace(quantity, unit="")
    value = tuple((monomial, factor / 100) for monomial, factor in quantity.value)
    return replace(quantity, value=value, unit="", decimals=None)


def _rounds_to(gold: Quantity, answer: Quantity) -> bool:
    """Return whether the answer is a decimal that matches the gold according to the table above."""
    if answer.goes_on:
        return _begins_with(gold, answer)
    if answer.decimals is None or answer.decimals < ROUNDED_DECIMALS:
        return False
    value, decimal = exact.approximate(dict(gold.value)), exact.approximate(dict(answer.value))
    if value is None or decimal is None:
        return False
    if answer.decimals >= PRINTED_DECIMALS:
        return abs(value - decimal) <= PRINTED_ERROR * max(abs(value), 1e-3)
    rational = exact.rational(dict(gold.value))
    if rational is None:
        return abs(value - decimal) <= 0.5000001 * 10.0**-answer.decimals
    written = exact.rational(dict(answer.value))
    return not _terminates(rational) and written == round(rational, answer.decimals)


def _begins_with(gold: Quantity, answer: Quantity) -> bool:
    """Return whether the gold value, truncated or rounded, equals a decimal such as `0.333...`."""
    value, decimal = exact.approximate(dict(gold.value)), exact.approximate(dict(answer.value))
    rational = exact.rational(dict(gold.value))
    if value is None or decimal is None or (rational is not None and _terminates(rational)):
        return False
    places = answer.decimals or 0
    return places <= PRINTED_DECIMALS and abs(value - decimal) < 10.0**-places


def _terminates(number: Fraction) -> bool:
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1
