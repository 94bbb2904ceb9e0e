"""Mathematical answers, compared exactly.

Read `mathematics` first, then `math_reading` (a text becomes a quantity) and `exact` (arithmetic
without rounding).
"""
