"""Runs of a workflow on a task: steps, budget, replies of a model, trace.

Read `executor` first, then `behaviours` (what an operator does), `replies` (what is read out of an
answer) and `protocols` (how backend and sandbox are reached, with and without an event loop).
"""
