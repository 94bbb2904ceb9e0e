"""The task `toolgym/env`: its samples, the score of an episode, and the metrics.

A sample is a task of the environment and has the same id. The score of an episode is a dict of
numbers, and Inspect averages each of them over the scored samples. An episode that ended with an
infrastructure error has `scored` 0 and nan for all other numbers, so it is excluded from their
means.
"""

from __future__ import annotations

from typing import Any, get_args

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from adapters.inspect_ai.play import EPISODE, Tools, named_after_toolgym, play
from toolgym import registration
from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord, no_figures


@scorer(metrics={"*": [mean(), stderr()]})  # type: ignore[untyped-decorator, unused-ignore]
@named_after_toolgym
def episode() -> Scorer:
    """Return the `EpisodeRecord.figures` of a sample's episode, with the record as metadata."""

    async def score(state: TaskState, target: Target) -> Score:
        kept = state.store.get(EPISODE)
        if kept is None:
            return Score(value=no_figures(), explanation="The sample failed before the end.")
        record = EpisodeRecord.from_json(kept)
        return Score(value=record.figures(), explanation=record.fault, metadata={"episode": kept})

    return score


@task  # type: ignore[untyped-decorator, unused-ignore]
@named_after_toolgym
def env(
    env_id: str,
    split: str | None = None,
    dataset: str | None = None,
    n: int | None = None,
    seed: int = 0,
    tools: Tools = "native",
    env_kwargs: dict[str, Any] | None = None,
) -> Task:
    """Return an environment as a task of Inspect.

    Args:
        env_id: Id of a registered environment, such as sqlgym/Explore-v0.
        split: Split of the data set.
        dataset: Folder or name of a data set of the environment.
        n: Number of tasks. None means all playable tasks, each of which is verified.
        seed: Seed for choosing `n` tasks. The chosen tasks are the same as in `toolgym eval`.
        tools: `native` passes the tools through the provider's interface. `text` describes them in
            the system prompt and reads calls from the model's text.
        env_kwargs: Other arguments of the environment.

    Raises:
        PrerequisiteError: If the environment cannot be created, or has no playable task. `inspect
            eval` prints the error message without a traceback.
    """
    given = {"split": split, "dataset": dataset}
    arguments = {**(env_kwargs or {}), **{k: v for k, v in given.items() if v is not None}}
    try:
        if tools not in get_args(Tools):
            raise ConfigurationError(f'tools must be "native" or "text", got {tools!r}.')
        tasks = registration.make(env_id, **arguments).tasks
        chosen = tasks.playable() if n is None else tasks.shuffle(seed).first_playable(n)
        if not len(chosen):
            raise ConfigurationError(tasks.nothing_playable())
    except ConfigurationError as mistake:
        raise PrerequisiteError(str(mistake)) from mistake
    samples = [
        Sample(id=each.id, input=each.question, metadata={"item": each.item}) for each in chosen
    ]
    return Task(
        dataset=MemoryDataset(samples, name=tasks.name),
        solver=play(env_id, tools, arguments),
        scorer=episode(),
        score_on_error=True,  # a fault ends its own sample, and not the evaluation
        display_name=env_id,
        metadata={"env_id": env_id, "env_kwargs": arguments},
    )
