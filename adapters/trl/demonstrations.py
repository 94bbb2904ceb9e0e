"""Supervised data: episodes played through the real environment, as chat messages.

Arrow stores a column of dicts as one struct with the keys of all rows, so `{"sql": ...}` comes back
as `{"sql": ..., "table_name": null, "value": null}`, a chat template prints the nulls, and a model
that is trained on them sends them in every call. Here both columns have the feature type `Json`,
which keeps each message as it was, through `map`, `concatenate_datasets`, parquet and
`save_to_disk`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapters.training.playable import playable_tasks
from toolgym import policies, registration
from toolgym.env import ToolEnv
from toolgym.messages import Message, episode_messages
from toolgym.policies import Policy, Situation
from toolgym.tries import seed_of_try, slots

if TYPE_CHECKING:
    from datasets import Dataset


def sft_dataset(
    env_id: str,
    *,
    n: int | None = None,
    seed: int = 0,
    policy: Policy | None = None,
    final: str | None = "done",
    **env_kwargs: Any,
) -> Dataset:
    """Demonstrations for `SFTTrainer`, or for any loop that renders chat messages.

    Args:
        env_id: A registered `ToolEnv`.
        n: How many tasks; None takes all.
        seed: Their order, and the seeds of the policy's situations.
        policy: Who plays. None is the environment's expert, of whom only right answers are kept; of
            any other policy every scored episode is kept. An action without text ends its episode.
        final: A last assistant turn. TRL's rollouts go on until a turn without a call, so the model
            has to learn one; None leaves it out.
        env_kwargs: For `gym.make`.

    Returns:
        Columns `messages` and `tools` (the environment's schemas, which are also what it is
        prompted with in evaluation and by `build_trainer`).

    Raises:
        ConfigurationError: `n` is below 1, no task is playable, or the environment has no expert.
        EnvironmentFault: The machine failed.
    """
    from datasets import Dataset, Features, Json, List

    env = registration.make(env_id, **env_kwargs)
    player = policies.expert() if policy is None else policy
    rows = []
    for slot, task_id in zip(slots(), playable_tasks(env.tasks, n, seed).ids, strict=False):
        own = seed_of_try(seed, task_id, 0)
        messages = _demonstration(env, player, task_id, slot, own, final)
        if env.episode.ledger.correct or (policy is not None and not env.episode.ledger.faulted):
            rows.append(messages)
    columns = {"messages": rows, "tools": [env.tool_schemas()] * len(rows)}
    features = Features({"messages": List(Json()), "tools": List(Json())})
    return Dataset.from_dict(columns, features=features)


def _demonstration(
    env: ToolEnv[Any], player: Policy, task_id: str, slot: int, seed: int, final: str | None
) -> list[Message]:
    """One episode played to its end, as messages."""
    observation, _ = env.reset(options={"task_id": task_id})
    while not env.episode.over:
        (action,) = player.act([Situation(slot, env, observation, seed)])
        if isinstance(action, str) and not action.strip():
            break
        observation, *_ = env.step(action)
    return episode_messages(env, final)
