"""Problems for workflows, and readers of their files.

- `task` defines a task.
- `loading` reads data sets.
- `layouts` finds the layout of a row.
- `code_prompts` reads the tests and functions in a Python prompt.
"""
