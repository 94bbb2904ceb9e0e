"""Runs of a workflow on a task: steps, budget, replies of a model, trace.

Read `executor` first, then `walk` (in which order), `behaviours` (what an operator does) and
`replies` (what is read out of an answer). `sync` runs the same from code that does not await.
"""
