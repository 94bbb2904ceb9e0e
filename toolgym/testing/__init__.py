"""Tests for an environment of your own: the contract that every environment here fulfils.

`contract` plays real episodes, by damaged calls too; `chat_server` is a server of chat completions
that says what a test tells it to.
"""

from toolgym.testing.contract import check_tool_env

__all__ = ["check_tool_env"]
