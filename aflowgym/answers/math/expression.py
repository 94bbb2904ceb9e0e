"""Parse mathematical expressions into their exact values and their remaining computations.

The grammar covers school mathematics: sums, products (explicit or implied), quotients, powers,
`\\frac` with or without braces, `\\sqrt`, brackets, mixed numbers (`1 1/2`, `2\\frac{1}{3}`),
thousands separators, repeating decimals (`0.\\overline{3}`), factorials of small numbers, and
single letters as unknowns. Ambiguous expressions such as `1/2x`, `5 6` and `x2` are rejected, and
so are words.

For example, `50-7*4-5*2` has the value 12 but does not answer "what is the change?", because the
question asks for the result. Therefore the reader returns the value together with its `Form`. The
form records remaining computations (like terms, products and powers of numbers, a root or quotient
that is an integer), fractions or roots that can be reduced, and brackets that are not expanded. A
single fraction of integers, a sum of a number and a root, and a power of ten count as fully
evaluated.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final, Literal

from aflowgym.answers.math import exact
from aflowgym.answers.math.exact import Unreadable, Value

Note = Literal["work", "reducible", "brackets"]
Form = frozenset[Note]
PLAIN: Final[Form] = frozenset()
_ASKED: Final = re.compile(
    r"\b(?P<reducible>simplify|simplified|simplest|reduced?|lowest)\b"
    r"|\b(?P<expanded>expand(?:ed)?|multiply out)\b|\b(?P<factored>factor(?:ed|i[sz]ed?)?)\b"
)


def _form_of_product(left: Value, right: Value, tens: bool) -> Form:
    """Return the form of a product. `tens` means that the second factor is a power of ten.

    An example is `3 * 10^8`.
    """
    numbers = exact.rational(left) is not None and exact.rational(right) is not None
    if numbers:
        return PLAIN if tens else frozenset({"work"})
    return frozenset({"brackets"}) if max(len(left), len(right)) > 1 else PLAIN


def _form_of_quotient(above: Value, below: Value) -> Form:
    """Return the form of a quotient. It is final for coprime whole numbers and for unknowns."""
    one, other = exact.rational(above), exact.rational(below)
    if one is None or not other:  # a quotient by 0 is refused when its value is computed
        return PLAIN
    if one.denominator != 1 or other.denominator != 1:
        return frozenset({"work"})
    if abs(other) == 1 or math.gcd(int(one), int(other)) == 1:
        return PLAIN
    return frozenset({"reducible"} if (one / other).denominator != 1 else {"work"})


def _form_of_power(base: Value, result: Value) -> Form:
    """Return the form of a power or a root."""
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
    """Return whether the form of an answer is acceptable, given the form of the gold answer.

    A question can impose further requirements.
    """
    asked = {match.lastgroup for match in _ASKED.finditer(question.lower())}
    left = set(answer - gold)
    if "factored" in asked and "brackets" in gold and "brackets" not in answer:
        return False
    if "reducible" not in asked:
        left.discard("reducible")
    if "expanded" not in asked:
        left.discard("brackets")
    return not left


MAX_LENGTH: Final = 400
_DEPTH: Final = 24
_PRODUCTS: Final = frozenset("abcxyz")
"""Letters that form a product if they are adjacent. Any other sequence of letters is a word."""
_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<repeating>\d*\.\d*\\overline\s*\{\d+\})
    | (?P<number>\d{1,3}(?:[,_]\d{3})+(?:\.\d+)?(?![\d_]|,\d)
        | \d+\.?\d*(?:[eE][+-]?\d{1,4})?(?![A-Za-z\d.])
        | \d+\.?\d* | \.\d+)
    | (?P<command>\\[A-Za-z]+)
    | (?P<letters>[A-Za-zπ∞]+)
    | (?P<sign>\*\*|[-+*/^!(){}\[\]])
    )""",
    re.VERBOSE,
)
_INTEGER: Final = re.compile(r"[+-]?\d{1,18}")
_SPACED: Final = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d/])(?! \d)")


def read_expression(text: str) -> tuple[Value, Form]:
    """Return the exact value of an expression and its form.

    Raises:
        Unreadable: If the string is not an expression, or has no supported exact value.

    >>> value, form = read_expression(r"\\frac12 + 2\\sqrt{12}")
    >>> value == read_expression(r"0.5 + 4\\sqrt3")[0], sorted(form)
    (True, ['reducible'])
    """
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return exact.number(int(text)), PLAIN
    if len(text) > MAX_LENGTH:
        raise Unreadable("it is too long")
    if " " in text:
        text = _SPACED.sub(lambda match: match[0].replace(" ", ""), text)
    reader = _Reader(text)
    value = reader.sum(0)
    if reader.kind != "end":
        raise Unreadable(f"unexpected {reader.text!r}")
    return value, reader.form


def read_number(text: str) -> Fraction:
    """Return the value of a number token, which can contain separators, decimals or an exponent.

    Raises:
        Unreadable: If its exponent is too large.
    """
    mantissa, _, exponent = text.replace(",", "").replace("_", "").lower().partition("e")
    if abs(int(exponent or 0)) > 300 or len(mantissa) > MAX_LENGTH:
        raise Unreadable("a number is too long")
    whole, _, decimals = mantissa.partition(".")
    value = Fraction(int((whole + decimals) or 0), 10 ** len(decimals))
    return value * Fraction(10) ** int(exponent or 0)


class _Reader:
    """A recursive-descent parser of one text with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self._source, self._place = text, 0
        self.kind, self.text, self.spaced = "", "", False
        self.form, self._tens = PLAIN, False
        self._advance()

    def _advance(self) -> None:
        rest = self._source[self._place :]
        if not rest.strip():
            self.kind, self.text, self.spaced = "end", "the end", False
            return
        match = _TOKEN.match(self._source, self._place)
        if match is None or match.lastgroup is None:
            raise Unreadable(f"{rest.strip()[0]!r} cannot be read")
        self.kind, self.text = match.lastgroup, match[match.lastgroup]
        self.spaced = match.start(match.lastgroup) > self._place
        self._place = match.end()

    def _take(self, sign: str) -> bool:
        if self.kind == "sign" and self.text == sign:
            self._advance()
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise Unreadable(f"{sign!r} is missing")

    def sum(self, depth: int) -> Value:
        """Parse terms joined by + and -."""
        if depth > _DEPTH:
            raise Unreadable("it is nested too deeply")
        value = self._product(depth)
        while self.kind == "sign" and self.text in "+-":
            minus = self.text == "-"
            self._advance()
            term = self._product(depth)
            self.form |= {"work"} if value.keys() & term.keys() else PLAIN
            value = exact.add(value, exact.negate(term) if minus else term)
        return value

    def _product(self, depth: int) -> Value:
        value, divided = self._signed(depth), False
        while True:
            if self._take("*"):
                value = self._multiply(value, self._signed(depth))
            elif self._take("/"):
                value, divided = self._divide(value, self._signed(depth)), True
            elif self._starts_factor():
                if divided:
                    raise Unreadable("it is ambiguous after '/'")
                value = self._multiply(value, self._power(depth))
            else:
                return value

    def _multiply(self, left: Value, right: Value) -> Value:
        self.form |= _form_of_product(left, right, self._tens)
        return exact.multiply(left, right)

    def _divide(self, above: Value, below: Value) -> Value:
        self.form |= _form_of_quotient(above, below)
        return exact.divide(above, below)

    def _starts_factor(self) -> bool:
        """Return whether a factor follows without a sign.

        A number never does, because `x2` and `5 6` are ambiguous.
        """
        if self.kind in ("number", "repeating"):
            raise Unreadable("two numbers are adjacent")
        return self.kind in ("letters", "command") or (self.kind == "sign" and self.text in "([{")

    def _signed(self, depth: int) -> Value:
        negative = False
        for _ in range(_DEPTH):
            if self._take("-"):
                negative = not negative
            elif not self._take("+"):
                break
        value = self._power(depth)
        return exact.negate(value) if negative else value

    def _power(self, depth: int) -> Value:
        value = self._atom(depth)
        self._tens = False
        if self._take("!"):
            value, self.form = _factorial(value), self.form | {"work"}
        if self._take("^") or self._take("**"):
            base, value = value, exact.power(value, self._exponent(depth + 1))
            self.form |= _form_of_power(base, value)
            self._tens = exact.rational(base) == 10
        return value

    def _exponent(self, depth: int) -> Value:
        if depth > _DEPTH:
            raise Unreadable("it is nested too deeply")
        if self._take("-"):
            return exact.negate(self._power(depth))
        return self._power(depth)

    def _atom(self, depth: int) -> Value:
        kind, text = self.kind, self.text
        if kind == "number":
            return self._number()
        if kind == "repeating":
            self._advance()
            return exact.number(_repeating(text))
        if kind == "letters":
            self._advance()
            return _letters(text)
        if kind == "command":
            self._advance()
            return self._command(text, depth)
        value = self._group(depth, ("(", ")"), ("{", "}"), ("[", "]"))
        if value is None:
            raise Unreadable(f"unexpected {text!r}")
        return value

    def _group(self, depth: int, *brackets: tuple[str, str]) -> Value | None:
        """Read a sum in brackets. Return None if no bracket follows."""
        for opening, closing in brackets:
            if self._take(opening):
                value = self.sum(depth + 1)
                self._expect(closing)
                return value
        return None

    def _number(self) -> Value:
        """Read a number or a mixed number, which is an integer with a positive fraction."""
        text = self.text
        whole = read_number(text)
        self._advance()
        if not text.isdigit():
            return exact.number(whole)
        rest = self._source[self._place - len(self.text) :] if self.kind != "end" else ""
        written = re.match(r"(\d+)\s*/\s*(\d+)(?![\d.,])", rest) if self.spaced else None
        latex = re.match(r"\\frac\s*(?:\{\s*(\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))", rest)
        match = written or latex
        if match is None:
            return exact.number(whole)
        above, below = (int(part) for part in match.groups() if part is not None)
        if not 0 < above < below or (written and match.end() != len(rest.rstrip())):
            raise Unreadable("two numbers are adjacent")
        self._place += match.end() - len(self.text)
        self._advance()
        return exact.number(whole + Fraction(above, below))

    def _command(self, name: str, depth: int) -> Value:
        if name == "\\frac":
            above = self._argument(depth)
            return self._divide(above, self._argument(depth))
        if name != "\\sqrt":
            raise Unreadable(f"{name} cannot be read")
        degree = 2
        if self._take("["):
            index = exact.rational(self.sum(depth + 1))
            self._expect("]")
            if index is None or index.denominator != 1:
                raise Unreadable("the degree of a root is not a number")
            degree = int(index)
        base = self._argument(depth)
        value = exact.root(base, degree)
        self.form |= _form_of_power(base, value)
        return value

    def _argument(self, depth: int) -> Value:
        """Read the argument of a command: a group, or a single digit or letter as in `\\frac12`."""
        value = self._group(depth, ("{", "}"), ("(", ")"))
        if value is not None:
            return value
        if self.kind not in ("number", "letters"):
            raise Unreadable("a command lacks its argument")
        first = self.text[0]
        self._place -= len(self.text) - 1
        letters = self.kind == "letters"
        self._advance()
        if not letters and not first.isdigit():
            raise Unreadable("a command lacks its argument")
        return _letters(first) if letters else exact.number(int(first))


def _letters(text: str) -> Value:
    """Read letters: a single letter is a symbol, a few are a product, and more are a word."""
    if len(text) > 1 and not (len(text) <= 3 and set(text) <= _PRODUCTS):
        raise Unreadable(f"{text!r} is a word")
    value = exact.number(1)
    for letter in text:
        value = exact.multiply(value, exact.symbol(letter))
    return value


def _factorial(value: Value) -> Value:
    of = exact.rational(value)
    if of is None or of.denominator != 1 or not 0 <= of <= 100:
        raise Unreadable("a factorial of a value that is not a small number")
    return exact.number(math.factorial(int(of)))


def _repeating(text: str) -> Fraction:
    """Return a repeating decimal: 0.1\\overline{6} is 1/6.

    The numerator is the number with the digits up to the end of the first period, minus the number
    with the digits before it. The denominator consists of nines, followed by zeros.
    """
    fixed, _, period = text.rstrip("}").replace(" ", "").partition("\\overline{")
    whole, _, decimals = fixed.partition(".")
    start = int((whole + decimals) or 0)
    shift = 10 ** len(decimals)
    nines = 10 ** len(period) - 1
    return Fraction(start, shift) + Fraction(int(period), shift * nines)
