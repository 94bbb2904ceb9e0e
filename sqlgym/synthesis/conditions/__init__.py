"""Conditions of a query, and the words that a question has for them.

Read `conditions` first; `forms` are the ways to say one.
"""
