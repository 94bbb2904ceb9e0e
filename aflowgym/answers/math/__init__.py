"""Mathematical answers, compared exactly.

* `mathematics` returns the verdicts.
* `math_reading` converts text to a quantity.
* `exact` computes without rounding.
"""
