"""English for names of tables and columns.

Read `nouns` first; `english` bends words, `lexicon` knows the odd ones.
"""
