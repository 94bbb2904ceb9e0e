"""English for names of tables and columns.

Read `naming` first, which asks `nouns`; `english` bends words, `lexicon` knows the odd ones.
"""
