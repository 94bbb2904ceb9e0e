"""Plots as data: Vega-Lite specifications, which the page draws.

Read `vega` first, then `lines`; each other file is one kind of plot. A function returns a
`Drawing`: the specification, the series of its legend, and the same numbers as a table.
"""
