"""Gymnasium environments in which a language model learns to use tools.

To write an environment, subclass `ToolEnv` and mark methods with `@tool`. `make` creates a
registered environment, `play` plays one episode, and `evaluate` plays many. A submodule is imported
when one of its names is first used. `import toolgym` is fast and loads neither torch nor
transformers.
"""

from typing import TYPE_CHECKING

from toolgym.lazy import lazy_names

if TYPE_CHECKING:
    from toolgym.calls import ToolCall as ToolCall
    from toolgym.calls import bind_call as bind_call
    from toolgym.calls import parse_calls as parse_calls
    from toolgym.calls import render_call as render_call
    from toolgym.env import ToolEnv as ToolEnv
    from toolgym.episode import Info as Info
    from toolgym.episode import Outcome as Outcome
    from toolgym.episode import info_to_json as info_to_json
    from toolgym.errors import ConfigurationError as ConfigurationError
    from toolgym.errors import EnvironmentFault as EnvironmentFault
    from toolgym.errors import TaskRefused as TaskRefused
    from toolgym.errors import ToolError as ToolError
    from toolgym.errors import ToolgymError as ToolgymError
    from toolgym.records import EpisodeRecord as EpisodeRecord
    from toolgym.records import Evaluation as Evaluation
    from toolgym.registration import load_environments as load_environments
    from toolgym.registration import make as make
    from toolgym.registration import tool_env_ids as tool_env_ids
    from toolgym.rewards import RewardConfig as RewardConfig
    from toolgym.rollout import evaluate as evaluate
    from toolgym.rollout import play as play
    from toolgym.runs.episodes import read_episodes as read_episodes
    from toolgym.spaces import UnicodeText as UnicodeText
    from toolgym.tasks import Task as Task
    from toolgym.tasks import TaskSet as TaskSet
    from toolgym.tools import Code as Code
    from toolgym.tools import ToolSpec as ToolSpec
    from toolgym.tools import tool as tool
    from toolgym.version import __version__ as __version__
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "toolgym.calls": "ToolCall bind_call parse_calls render_call",
            "toolgym.env": "ToolEnv",
            "toolgym.episode": "Info Outcome info_to_json",
            "toolgym.errors": (
                "ConfigurationError EnvironmentFault TaskRefused ToolError ToolgymError"
            ),
            "toolgym.records": "EpisodeRecord Evaluation",
            "toolgym.registration": "load_environments make tool_env_ids",
            "toolgym.rewards": "RewardConfig",
            "toolgym.rollout": "evaluate play",
            "toolgym.runs.episodes": "read_episodes",
            "toolgym.spaces": "UnicodeText",
            "toolgym.tasks": "Task TaskSet",
            "toolgym.tools": "Code ToolSpec tool",
            "toolgym.version": "__version__",
        },
    )
