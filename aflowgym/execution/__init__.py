"""Execution of workflows on tasks: the interpreter, verdicts on solutions, and tool errors."""
