"""Loads data sets: a name, file or folder becomes a `TaskSet`.

The entry point is `load`. `spider` and `rows` read folders and rows, `synthesized` writes tasks for
databases without questions, `bundled` contains the data sets of the package, and `writing` writes
folders in the Spider layout.
"""
