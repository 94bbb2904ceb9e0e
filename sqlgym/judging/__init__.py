"""Judges of queries and answers: results compared with those of the gold query.

Read `judge` first, then `results` (two tables), `answers` (a value that was written) and `ties`
(where a gold query leaves a choice). `recheck` is the second rule, which shares nothing with the
first.
"""
