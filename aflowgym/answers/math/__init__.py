"""Mathematical answers, compared exactly.

- `mathematics` returns the verdicts.
- `math_reading` converts a string to a quantity.
- `exact` computes without rounding.
"""
