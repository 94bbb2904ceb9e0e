"""Verdicts on queries and answers, by comparison with the result of the gold query.

`judge` is the entry point. `results` compares two results, and `answers` compares a written value
with a result. `several_results` and `ties` detect gold queries that have several correct results.
`suite` compares queries on several instances of a database. `recheck` checks recorded answers by
independent rules.
"""
