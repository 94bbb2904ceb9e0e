"""A test for an environment of your own: the contract that the environments here keep."""

from toolgym.testing.contract import check_tool_env

__all__ = ["check_tool_env"]
