"""Data sets: a name, file or folder as a `TaskSet`.

Read `load` first. `spider` and `rows` read folders and rows, `synthesized` writes tasks for
databases without questions, `bundled` has the data sets of the package, and `writing` writes
folders in the Spider layout.
"""
