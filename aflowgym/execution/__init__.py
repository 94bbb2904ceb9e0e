"""Runs of a workflow on a task: steps, budget, replies of a model, trace.

Read `executor` first, then `behaviours` (what an operator does), `replies` (what is read out of an
answer) and `protocols` (what a backend and a sandbox have to offer).
"""
