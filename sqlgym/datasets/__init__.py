"""Where tasks come from: names and folders become a `TaskSet`.

Read `load` first. `spider`, `rows`, `text_source` and `layout` read and write formats, `bundled`
and `tiny_worlds` are the data sets that come along, `synthesised` writes tasks for a bare database.
"""
