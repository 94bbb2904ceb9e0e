"""The data set that `GRPOTrainer` draws its prompts from: one row per task.

A row names its task, so that all rollouts of a group get the same question: TRL repeats the row for
each of them and hands it to `reset`, which returns the question, and TRL adds that to the last
message. Hence the empty user message. Without a task id the members of a group could draw different
questions, and their rewards would be compared for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapters.training.playable import playable_tasks
from toolgym import registration
from toolgym.messages import system_prompt

if TYPE_CHECKING:
    from datasets import Dataset


def training_dataset(
    env_id: str, *, split: str | None = None, n: int | None = None, seed: int = 0, **env_kwargs: Any
) -> Dataset:
    """Prompts for `GRPOTrainer(train_dataset=...)`.

    Args:
        env_id: A registered `ToolEnv`.
        split: Passed to the environment; None leaves its default, which is `train`.
        n: How many tasks; None takes all, and verifies every one of them first.
        seed: Their order, and which `n` are taken.
        env_kwargs: For `gym.make`; give `environment_factory` the same, `split` included.

    Returns:
        Columns `prompt` (a system message and a user message without content) and `task_id`. Tasks
        that cannot be played fairly are left out.

    Raises:
        ConfigurationError: `n` is below 1, or no task is playable.
    """
    from datasets import Dataset, Features, List, Value

    if split is not None:
        env_kwargs["split"] = split
    env = registration.make(env_id, **env_kwargs)
    tasks = playable_tasks(env.tasks, n, seed)
    prompt = [{"role": "system", "content": system_prompt(env)}, {"role": "user", "content": ""}]
    message = {"role": Value("string"), "content": Value("string")}
    features = Features({"prompt": List(message), "task_id": Value("string")})
    columns = {"prompt": [prompt] * len(tasks), "task_id": tasks.ids}
    return Dataset.from_dict(columns, features=features)
