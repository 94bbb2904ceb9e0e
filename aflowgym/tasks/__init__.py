"""Problems for workflows, and the readers of files of them.

Read `task` first, then `loading`, which asks `layouts` for the form of a file, and `code_prompts`
for the tests and functions that a prompt in Python holds.
"""
