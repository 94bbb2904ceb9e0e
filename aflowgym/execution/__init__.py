"""Runs of workflows on tasks: the interpreter, the verdict on a solution, and agents' errors."""
