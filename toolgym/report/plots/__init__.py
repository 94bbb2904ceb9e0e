"""Plots as SVG text, without a library or a script.

Read `axes` first, then `lines`; each other file is one kind of plot.
"""
