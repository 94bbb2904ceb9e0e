"""Exact arithmetic for the numbers and polynomials in answers to math problems.

A value is a sum of terms, each of which is the product of a rational coefficient, the square root
of a squarefree integer, and integer powers of symbols (`π`, `e`, the unknowns, and `i`, whose
square is replaced by -1). Square roots of different squarefree integers are linearly independent
over the rationals. Therefore two such sums are equal if and only if they have the same terms, and
the comparison needs no floating-point arithmetic or rounding.

    12 / √3 + 1/2   ->   {(3, ()): 4, (1, ()): 1/2}

An irrational root of higher degree, such as the cube root of 2, is represented by a symbol after
all perfect powers have been extracted. Real roots of different degrees are linearly independent,
too. Values without an exact form raise `Unreadable`: for example, a product of two such roots, the
quotient of two polynomials, or a power that would be too large for memory. No operation takes more
than a few milliseconds, regardless of the input.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

Monomial = tuple[int, tuple[tuple[str, int], ...]]
"""A monomial: the squarefree integer under the root, and the symbols with their powers, sorted."""
Value = dict[Monomial, Fraction]
"""A sum: the coefficient of each monomial, which is never 0. The empty sum is 0."""

ONE: Final[Monomial] = (1, ())
MAX_BITS: Final = 2048
MAX_TERMS: Final = 48
MAX_RADICAND: Final = 10**8
CONSTANTS: Final = {"π": math.pi, "e": math.e}


class Unreadable(ValueError):
    """Raised for text whose value this package cannot represent exactly."""


def number(of: Fraction | int) -> Value:
    """Return a rational number as a sum.

    Raises:
        Unreadable: If it is too long.
    """
    fraction = Fraction(of)
    if fraction.numerator.bit_length() + fraction.denominator.bit_length() > MAX_BITS:
        raise Unreadable("a number is too long")
    return {ONE: fraction} if fraction else {}


def symbol(name: str) -> Value:
    """Return a symbol to the first power."""
    return {(1, ((name, 1),)): Fraction(1)}


def rational(value: Value) -> Fraction | None:
    """Return the value as a rational number, or None if it is not rational."""
    if not value:
        return Fraction(0)
    return value[ONE] if len(value) == 1 and ONE in value else None


def add(left: Value, right: Value) -> Value:
    """Return the sum."""
    return _collect([*left.items(), *right.items()])


def negate(value: Value) -> Value:
    """Return the value with the opposite sign."""
    return {monomial: -factor for monomial, factor in value.items()}


def multiply(left: Value, right: Value) -> Value:
    """Return the product.

    Raises:
        Unreadable: If the result has too many terms, or numbers with too many digits.
    """
    if len(left) * len(right) > MAX_TERMS * 4:
        raise Unreadable("it has too many terms")
    return _collect(
        _product(one, other, a * b) for one, a in left.items() for other, b in right.items()
    )


def divide(left: Value, right: Value) -> Value:
    """Return the quotient. The divisor must be a single term, or a sum of two numbers.

    Raises:
        Unreadable: If the divisor is 0, or a sum without a supported exact inverse.
    """
    if not right:
        raise Unreadable("it divides by 0")
    if len(right) == 1:
        return multiply(left, _inverse(*next(iter(right.items()))))
    if len(right) > 2 or any(name != "i" for _, names in right for name, _ in names):
        raise Unreadable("it divides by a sum")
    first, second = ({monomial: factor} for monomial, factor in right.items())
    conjugate = add(first, negate(second))
    below = multiply(right, conjugate)
    if len(below) != 1:
        raise Unreadable("it divides by a sum")
    return divide(multiply(left, conjugate), below)


def power(base: Value, exponent: Value) -> Value:
    """Return a power with a rational exponent.

    Raises:
        Unreadable: If the exponent is not rational, or the power is too large or has no exact form.
    """
    degree = rational(exponent)
    if degree is None:
        raise Unreadable("an exponent is not a number")
    if degree.denominator != 1:
        return root(power(base, number(degree.numerator)), degree.denominator)
    if degree < 0:
        return divide(number(1), power(base, number(-degree)))
    _check_power(base, int(degree))
    result = number(1)
    for bit in bin(int(degree))[2:]:
        result = multiply(result, result)
        if bit == "1":
            result = multiply(result, base)
    return result


def root(value: Value, degree: int) -> Value:
    """Return the principal root of a rational number, or the real root of odd degree.

    Raises:
        Unreadable: If the value is not rational, or its root has no supported exact form.
    """
    of = rational(value)
    if of is None or not 2 <= degree <= 64:
        raise Unreadable("a root of a value that is not a number")
    if of < 0 and degree == 2:
        return multiply(_real_root(-of, 2), symbol("i"))
    if of < 0 and not degree % 2:
        raise Unreadable("an even root of a negative number")
    return _real_root(of, degree)


def approximate(value: Value) -> float | None:
    """Return the value as a floating-point number.

    The result is None if the value contains an unknown or `i`, or is too large for a float.
    """
    total = 0.0
    try:
        for (radicand, names), factor in value.items():
            term = float(factor) * math.sqrt(radicand)
            for name, degree in names:
                base = CONSTANTS.get(name) if name[0] != "√" else _root_size(name)
                if base is None:
                    return None
                term *= base**degree
            total += term
    except OverflowError:
        return None
    return total


def _collect(terms: Iterable[tuple[Monomial, Fraction]]) -> Value:
    total: Value = {}
    for monomial, factor in terms:
        total[monomial] = total.get(monomial, Fraction(0)) + factor
    if len(total) > MAX_TERMS:
        raise Unreadable("it has too many terms")
    for factor in total.values():
        if factor.numerator.bit_length() + factor.denominator.bit_length() > MAX_BITS:
            raise Unreadable("a number is too long")
    return {monomial: factor for monomial, factor in total.items() if factor}


def _product(left: Monomial, right: Monomial, factor: Fraction) -> tuple[Monomial, Fraction]:
    common = math.gcd(left[0], right[0])
    radicand = left[0] * right[0] // common**2
    if not left[1] and not right[1]:
        return (radicand, ()), factor * common
    degrees = dict(left[1])
    for name, degree in right[1]:
        degrees[name] = degrees.get(name, 0) + degree
    turns = degrees.pop("i", 0) % 4
    if turns % 2:
        degrees["i"] = 1
    names = tuple(sorted((name, degree) for name, degree in degrees.items() if degree))
    roots = [degree for name, degree in names if name[0] == "√"]
    if roots and (roots != [1] or radicand != 1):
        raise Unreadable("it multiplies roots of different degrees")
    return (radicand, names), factor * common * (-1 if turns >= 2 else 1)


def _inverse(monomial: Monomial, factor: Fraction) -> Value:
    radicand, names = monomial
    turned = tuple((name, -degree) for name, degree in names)
    return _collect([_product((radicand, ()), (1, turned), 1 / (factor * radicand))])


def _check_power(base: Value, degree: int) -> None:
    bits = max(
        (f.numerator.bit_length() + f.denominator.bit_length() for f in base.values()), default=0
    )
    trivial = not base or rational(base) in (1, -1)
    if degree > (10**6 if trivial else 1024) or (not trivial and bits * degree > MAX_BITS):
        raise Unreadable("a power is too large")


def _real_root(of: Fraction, degree: int) -> Value:
    """Return a root as a rational number times a root that contains no perfect power."""
    if max(abs(of.numerator), of.denominator) > MAX_RADICAND:
        above, below = (_exact_root(each, degree) for each in (abs(of.numerator), of.denominator))
        return number(Fraction(above if of > 0 else -above, below))
    powers = _primes(abs(of.numerator)) | {p: -k for p, k in _primes(of.denominator).items()}
    outside = Fraction(0 if not of else 1 if of > 0 else -1)
    inside: dict[int, int] = {}
    for prime, power_ in powers.items():
        outside *= Fraction(prime) ** (power_ // degree)
        if power_ % degree:
            inside[prime] = power_ % degree
    common = math.gcd(degree, *inside.values())
    radicand = math.prod(prime ** (power_ // common) for prime, power_ in inside.items())
    if not inside or degree == 2 * common:
        return {(radicand, ()): outside} if outside else {}
    return multiply(number(outside), symbol(f"√{degree // common}:{radicand}"))


def _root_size(name: str) -> float:
    """Return a root that is a symbol, as a floating-point number."""
    degree, _, radicand = name[1:].partition(":")
    return float(int(radicand) ** (1 / int(degree)))


def _primes(of: int) -> dict[int, int]:
    """Return the prime factors of a number up to `MAX_RADICAND`, with their powers."""
    powers: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= of:
        while of % divisor == 0:
            powers[divisor] = powers.get(divisor, 0) + 1
            of //= divisor
        divisor += 1
    return powers | {of: 1} if of > 1 else powers


def _exact_root(of: int, degree: int) -> int:
    """Return the integer whose power is the given number, found by bisection."""
    low, high = 0, 1 << (of.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= of else (low, middle - 1)
    if low**degree != of:
        raise Unreadable("a root is not exact")
    return low
