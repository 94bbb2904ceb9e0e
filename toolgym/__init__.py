"""toolgym: Gymnasium environments in which a language model learns to use tools.

The core knows no SQL, no workflow and no trainer. A family of environments subclasses `ToolEnv` and
marks methods with `@tool`; trainers and policies see `ToolEnv` only. Importing this loads neither
torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from toolgym.lazy import names_from

if TYPE_CHECKING:
    from toolgym.calls import ToolCall, bind_call, parse_calls, render_call
    from toolgym.env import ToolEnv
    from toolgym.episode import Info, Outcome, info_to_json
    from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused, ToolError
    from toolgym.records import EpisodeRecord, Evaluation
    from toolgym.registration import load_environments, tool_env_ids
    from toolgym.rewards import RewardConfig
    from toolgym.rollout import evaluate
    from toolgym.runs.episodes import read_episodes
    from toolgym.spaces import UnicodeText
    from toolgym.tasks import Task, TaskSet
    from toolgym.tools import Code, ToolSpec, tool

__all__ = [
    "Code",
    "ConfigurationError",
    "EnvironmentFault",
    "EpisodeRecord",
    "Evaluation",
    "Info",
    "Outcome",
    "RewardConfig",
    "Task",
    "TaskRefused",
    "TaskSet",
    "ToolCall",
    "ToolEnv",
    "ToolError",
    "ToolSpec",
    "UnicodeText",
    "bind_call",
    "evaluate",
    "info_to_json",
    "load_environments",
    "parse_calls",
    "read_episodes",
    "render_call",
    "tool",
    "tool_env_ids",
]

_HOME = {  # imported when first used: the command line starts quickly
    "Code": "toolgym.tools",
    "ConfigurationError": "toolgym.errors",
    "EnvironmentFault": "toolgym.errors",
    "EpisodeRecord": "toolgym.records",
    "Evaluation": "toolgym.records",
    "Info": "toolgym.episode",
    "Outcome": "toolgym.episode",
    "RewardConfig": "toolgym.rewards",
    "Task": "toolgym.tasks",
    "TaskRefused": "toolgym.errors",
    "TaskSet": "toolgym.tasks",
    "ToolCall": "toolgym.calls",
    "ToolEnv": "toolgym.env",
    "ToolError": "toolgym.errors",
    "ToolSpec": "toolgym.tools",
    "UnicodeText": "toolgym.spaces",
    "bind_call": "toolgym.calls",
    "evaluate": "toolgym.rollout",
    "info_to_json": "toolgym.episode",
    "load_environments": "toolgym.registration",
    "parse_calls": "toolgym.calls",
    "read_episodes": "toolgym.runs.episodes",
    "render_call": "toolgym.calls",
    "tool": "toolgym.tools",
    "tool_env_ids": "toolgym.registration",
}

_named = names_from(__name__, _HOME)


def __getattr__(name: str) -> Any:
    """A name of `__all__`, or a module of this package, imported when it is first asked for."""
    if name in _HOME or name.startswith("_"):
        found = _named(name)
    else:
        module = f"{__name__}.{name}"
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as problem:
            if problem.name != module:
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return globals().setdefault(name, found)
