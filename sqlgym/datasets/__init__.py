"""Loads a data set from a name, file or folder as a `TaskSet`.

The entry point is `load`. `spider` reads folders, `rows` reads rows, `synthesized` writes tasks for
databases without questions, `bundled` contains the data sets of the package, and `writing` writes
folders in the Spider layout.
"""
