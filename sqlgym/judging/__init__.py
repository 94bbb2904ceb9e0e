"""Judges of queries and answers: results compared with those of the gold query.

Read `judge` first, then `results` (two results), `answers` (a written value), `several_results`
and `ties` (golds with several right results) and `suite` (verdicts on several instances of a
database). `recheck` judges recorded answers a second time by other rules.
"""
