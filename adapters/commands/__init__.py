"""The commands of the adapters: train, preflight, audit, models, export, serve, mcp.

Entry points in the group `toolgym.commands` register them. PyTorch and the trainers are imported
when a command runs, since `toolgym --help` imports all commands.
"""
