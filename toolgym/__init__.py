"""toolgym: Gymnasium environments in which a language model learns to use tools.

The core knows no SQL, no workflow and no trainer. A family of environments subclasses `ToolEnv` and
marks methods with `@tool`; trainers and policies see `ToolEnv` only. Importing this loads neither
torch nor transformers.
"""

from toolgym.calls import ToolCall, bind_call, parse_calls, render_call
from toolgym.env import ToolEnv
from toolgym.episode import Info, Outcome, info_to_json
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused, ToolError
from toolgym.former_paths import redirect
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

redirect(
    {
        "toolgym.chat.scripted_server": "toolgym.testing.chat_server",
        "toolgym.task_report": "toolgym.inspection",
    }
)
