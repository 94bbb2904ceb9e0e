"""Is this the right answer to a math problem? By value, never by the look of it.

An answer is read into numbers, polynomials, lists, tuples, intervals, sets or a word, with exact
arithmetic (`aflowgym.answers.exact`), a unit, and the unknown it names (`x = 5`). Two are the same
if everything is. Only here does a decimal stand for something it does not equal:

| gold              | answer                | right if                                             |
| ----------------- | --------------------- | ---------------------------------------------------- |
| 1/3, √2, π        | a decimal             | it has 4 decimals or more and is the gold rounded    |
| any number        | 12 or more decimals   | they agree to 1e-9, as printed floating point does   |
| 50, "what percent"| `50` or `50%`         | always; without such a question 50% is 1/2           |

So 99.5 is not 100 and `2√3` is not `2√5`. What cannot be read may be asked of `math-verify`, where
it is installed (`aflowgym.answers.outside`), in another process, under a time limit.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from aflowgym.answers import exact, units
from aflowgym.answers.exact import Unreadable
from aflowgym.answers.expression import MAX_LENGTH
from aflowgym.answers.extraction import bare, final_answer, stated
from aflowgym.answers.latex import plain
from aflowgym.answers.math_reading import Quantity, Reading, Several, read_math
from aflowgym.answers.outside import Outside
from aflowgym.answers.verdict import RIGHT, Verdict, wrong
from aflowgym.remembering import remembered

ROUNDED_DECIMALS: Final = 4
PRINTED_DECIMALS: Final = 12
PRINTED_ERROR: Final = 1e-9
_IDLE_BLANK: Final = re.compile(r"(?<!\w) | (?!\w)")


def judge_math(
    gold: str, answer: str, question: str = "", outside: Outside | None = None
) -> Verdict:
    """Judge what was written against the gold. Never raises.

    Args:
        gold: The right answer, as the data set gives it.
        answer: A text that ends in an answer; see `aflowgym.answers.extraction`.
        question: Tells which units and nouns may follow a number, and whether percent is asked.
        outside: Whom to ask about what cannot be read here; None asks nobody.

    >>> judge_math("0.5", r"\\boxed{\\frac12}").correct, judge_math("100", "99.5").correct
    (True, False)
    """
    nouns = units.words_of(question)
    try:
        expected: Reading | None = read_gold(gold, nouns)
    except Unreadable:
        expected = None
    found = final_answer(answer).text
    if not found:
        return wrong("there is no answer")
    given = _read_answer(found, nouns)
    if expected is not None and given is not None:
        percent, asked = units.asks_percent(question), units.units_of(nouns)
        same = _same(expected, given, asked, percent)
        return RIGHT if same else wrong("the value differs")
    if len(found) <= MAX_LENGTH and canonical(gold) == canonical(found):
        return RIGHT
    told = outside.same(gold, found) if outside is not None else None
    if told is not None:
        return RIGHT if told else wrong("the value differs")
    if expected is None:
        return Verdict(None, 0.0, "the gold answer cannot be read")
    return wrong("the answer cannot be read")


def canonical(text: str) -> str:
    """What two answers are compared by that cannot be read: without decoration and idle blanks."""
    return _IDLE_BLANK.sub("", plain(bare(text)))


@remembered(4096)
def read_gold(text: str, nouns: frozenset[str] = frozenset()) -> Reading:
    """Read a gold answer.

    Raises:
        Unreadable: It is nothing that this module reads.
    """
    return read_math(bare(text), nouns)


def _read_answer(text: str, nouns: frozenset[str]) -> Reading | None:
    """The answer itself, or what a line of prose states at its end."""
    try:
        read = read_math(text, nouns)
    except Unreadable:
        read = None
    said = stated(text)
    if said is None or isinstance(read, Quantity | Several):
        return read
    try:
        return read_math(said, nouns)
    except Unreadable:
        return read


def _same(gold: Reading, answer: Reading, asked: frozenset[str], percent: bool) -> bool:
    if isinstance(gold, Quantity) and isinstance(answer, Quantity):
        return _same_quantity(gold, answer, asked, percent)
    if isinstance(gold, Several) and isinstance(answer, Several):
        if gold.brackets != answer.brackets or len(gold.items) != len(answer.items):
            return False
        if gold.brackets:
            pairs = zip(gold.items, answer.items, strict=True)
            return all(_same(one, other, asked, percent) for one, other in pairs)
        return _same_items(gold, answer, asked, percent)
    return gold == answer


def _same_items(gold: Several, answer: Several, asked: frozenset[str], percent: bool) -> bool:
    """Lists and sets have no order: each item finds its own."""
    left = list(answer.items)
    for item in gold.items:
        match = next((other for other in left if _same(item, other, asked, percent)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _same_quantity(gold: Quantity, answer: Quantity, asked: frozenset[str], percent: bool) -> bool:
    if gold.name and answer.name and gold.name != answer.name:
        return False
    gold, answer = _as_share(gold, percent), _as_share(answer, percent)
    if not units.same_unit(gold.unit, answer.unit, asked):
        return False
    return gold.value == answer.value or _rounds_to(gold, answer)


def _as_share(quantity: Quantity, percent: bool) -> Quantity:
    """In a question for percent a bare number is one; elsewhere 50% is the number 1/2."""
    if quantity.unit != units.PERCENT:
        return quantity
    if percent:
        return Quantity(quantity.value, "", quantity.decimals, quantity.name)
    value = tuple((monomial, factor / 100) for monomial, factor in quantity.value)
    return Quantity(value, "", None, quantity.name)


def _rounds_to(gold: Quantity, answer: Quantity) -> bool:
    """Is the answer a decimal that stands for the gold? The table above says when."""
    if answer.decimals is None or answer.decimals < ROUNDED_DECIMALS:
        return False
    value, given = exact.approximate(dict(gold.value)), exact.approximate(dict(answer.value))
    if value is None or given is None:
        return False
    if answer.decimals >= PRINTED_DECIMALS:
        return abs(value - given) <= PRINTED_ERROR * max(abs(value), 1e-3)
    rational = exact.rational(dict(gold.value))
    if rational is None:
        return abs(value - given) <= 0.5000001 * 10.0**-answer.decimals
    written = exact.rational(dict(answer.value))
    return not _terminates(rational) and written == round(rational, answer.decimals)


def _terminates(number: Fraction) -> bool:
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1
