"""The commands that need a trainer: `toolgym train` and what comes after it.

They are found through the entry-point group `toolgym.commands`. Importing one is cheap, since the
help of all commands does it; torch and the trainers are imported when a command runs.
"""
