"""Tests for an environment or an adapter of your own: the contracts that those here fulfil.

`contract` plays real episodes of an environment, by damaged calls too; `adapter` holds what a
framework made of the episodes of `scripts` against the environment itself; `chat_server` is a
server of chat completions that says what a test tells it to.
"""

from toolgym.testing.adapter import check_adapter
from toolgym.testing.contract import check_tool_env

__all__ = ["check_adapter", "check_tool_env"]
