"""Tasks for workflows, and functions that load them from files.

* `task` defines a task.
* `loading` reads data sets.
* `layouts` recognizes the layout of a row.
* `code_prompts` reads the tests and functions in a Python prompt.
"""
