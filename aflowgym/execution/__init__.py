"""Runs of workflows on tasks: the interpreter, the verdict on a solution, errors for the agent.

Read `interpreter` first.
"""
