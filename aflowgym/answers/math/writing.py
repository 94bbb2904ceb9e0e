"""How a value is written: what is left in it to be worked out.

`50-7*4-5*2` has the value 12 and is no answer to "what is the change?", since whoever asks wants
the sum done. So the reader of expressions notes, beside the value, what a reader of an answer would
note: work that is left (like terms, products and powers of numbers, a root or quotient that is
whole), a fraction or root that can be reduced, and brackets that are not multiplied out. A single
fraction of whole numbers, a sum of a number and a root, and a power of ten are final.
"""

from __future__ import annotations

import math
import re
from typing import Final, Literal

from aflowgym.answers.math import exact
from aflowgym.answers.math.exact import Value

Note = Literal["work", "reducible", "brackets"]
Form = frozenset[Note]
PLAIN: Final[Form] = frozenset()
_ASKED: Final = re.compile(
    r"\b(?P<reducible>simplify|simplified|simplest|reduced?|lowest)\b"
    r"|\b(?P<expanded>expand(?:ed)?|multiply out)\b|\b(?P<factored>factor(?:ed|i[sz]ed?)?)\b"
)


def of_sum(left: Value, right: Value) -> Form:
    """Two terms that have been added."""
    return frozenset({"work"}) if left.keys() & right.keys() else PLAIN


def of_product(left: Value, right: Value, tens: bool) -> Form:
    """Two factors; `tens` tells that the second is a power of ten, as in `3 * 10^8`."""
    numbers = exact.rational(left) is not None and exact.rational(right) is not None
    if numbers:
        return PLAIN if tens else frozenset({"work"})
    return frozenset({"brackets"}) if max(len(left), len(right)) > 1 else PLAIN


def of_quotient(above: Value, below: Value) -> Form:
    """A quotient: final if it is a fraction of whole numbers, or of more than numbers."""
    one, other = exact.rational(above), exact.rational(below)
    if one is None or other is None:
        return PLAIN
    if one.denominator != 1 or other.denominator != 1:
        return frozenset({"work"})
    if abs(other) == 1 or math.gcd(int(one), int(other)) == 1:
        return PLAIN
    return frozenset({"reducible"} if (one / other).denominator != 1 else {"work"})


def of_power(base: Value, result: Value) -> Form:
    """A power or a root."""
    of = exact.rational(base)
    if of == 10:
        return PLAIN
    if exact.rational(result) is not None:
        return frozenset({"work"})
    if of is not None:
        whole = all(abs(factor) == 1 for factor in result.values())
        return PLAIN if whole or of.denominator != 1 else frozenset({"reducible"})
    return frozenset({"brackets"}) if len(base) > 1 else PLAIN


def is_final(gold: Form, answer: Form, question: str) -> bool:
    """May an answer of this form stand for a gold of that form? A question may ask for more."""
    asked = {found.lastgroup for found in _ASKED.finditer(question.lower())}
    left = set(answer - gold)
    if "factored" in asked and "brackets" in gold and "brackets" not in answer:
        return False
    if "reducible" not in asked:
        left.discard("reducible")
    if "expanded" not in asked:
        left.discard("brackets")
    return not left
