"""Data sets: a name, file or folder as a `TaskSet`.

Read `load` first. `spider`, `rows`, `text_source` and `layout` read and write formats, `bundled`
and `tiny_worlds` are the data sets that come along, `synthesised` writes tasks for a bare database.
"""
