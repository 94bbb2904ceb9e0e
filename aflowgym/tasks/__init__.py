"""Problems for workflows: what one is, and how files of them are read.

Read `task` first, then `loading`, which asks `layouts` for the form of a file; `named_sets` are the
data sets that have a name.
"""
