"""The commands of the adapters: train, preflight, audit, models, export, serve, mcp.

They are found through the entry-point group `toolgym.commands`. Importing one is cheap, since the
help of all commands does it; torch and the trainers are imported when a command runs.
"""
