"""Evaluations of a run: their tasks, which of them are held out, and whether accuracy changed.

Whether tasks are held out is determined from the data, not from the names of the splits. If the two
splits share tasks, for example because a file serves as every split or the environment has no
splits, `separated` keeps them apart. If there is only one task, training and evaluation share it,
and no evaluation is reported as held out.

A data set can contain tasks on databases (or other items) that also occur in training, and tasks on
databases that do not. In this case, there are two evaluations, `unseen tasks` and `unseen
databases`.

The first evaluation is played twice: with greedy decoding, and at the sampling temperature of
training. The results of greedy decoding can change by chance: if the model has two behaviors of
similar probability, a small change in the weights can switch between them. The accuracy at the
sampling temperature changes less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adapters.training.settings import Separation, TrainSettings
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.intervals import Effect, difference
from toolgym.runs.run import ITEMS, SAMPLED
from toolgym.unseen import TASKS, divided, kinds_unseen, unseen

FEWER: Final = 4
"""Divisor of the number of tasks that are played on unseen items.

Such tasks take longer, since a model that does not know an item uses all available steps. The tiny
model takes 0.5 s for a task on an unseen database and 0.02 s for one on a known database.
"""
SEEN: Final = "tasks that are trained on"
"""Name of an evaluation whose tasks are not held out."""
SEED: Final = 0
"""Seed for choosing tasks and for the seeds in episode records; the same for all runs."""


@dataclass(frozen=True)
class Evaluation:
    """An evaluation of a run, made before and after reinforcement learning.

    Attributes:
        name: `unseen databases`, `unseen tasks` etc., or `SEEN`. The name ends with `, sampled` if
            the tasks are not played greedily.
        suffix: Suffix of the phase names of the evaluation's rollouts: "", `ITEMS` or `SAMPLED`.
        env_kwargs: Arguments of the environment.
        source: Name of the set of tasks.
        unseen: The levels (task, item) at which no evaluation task occurs in training.
        tasks: Number of tasks in the set.
        played: Maximum number of tasks that are evaluated.
        temperature: Sampling temperature; 0 is greedy.
        tries: Attempts per task.
    """

    name: str
    suffix: str
    env_kwargs: dict[str, Any]
    source: str
    unseen: tuple[str, ...]
    tasks: int
    played: int
    temperature: float = 0.0
    tries: int = 1

    @property
    def is_held_out(self) -> bool:
        """Whether training uses none of the evaluation's tasks."""
        return TASKS in self.unseen

    def to_json(self) -> dict[str, Any]:
        """Return the evaluation as it appears in `summary.json`, without its results."""
        names = ("name", "source", "tasks", "unseen", "temperature", "tries")
        facts = {name: getattr(self, name) for name in names}
        return {**facts, "held_out": self.is_held_out}


def evaluations(settings: TrainSettings) -> tuple[Evaluation, ...]:
    """Return the evaluations of a run. The first evaluation determines the reported gain.

    Args:
        settings: Settings of the run.

    Raises:
        ConfigurationError: If the environment cannot be made.
    """
    training = registration.make(settings.env_id, **settings.training_kwargs)
    items = training.family.kinds[1]
    chosen = [_evaluation(settings, training, settings.evaluation_kwargs)]
    if items not in chosen[0].unseen and settings.eval_split:
        own = {k: v for k, v in settings.training_kwargs.items() if k in ("split", "task_part")}
        kwargs = {**settings.evaluation_kwargs, "split": _split_of(settings, training)}
        tasks = _made(settings, {**kwargs, "task_part": None}).tasks
        if len(unseen(tasks, training.tasks, items, training.family)):
            kwargs["task_part"] = {"unseen_by": own, "kind": items}
            chosen.append(_evaluation(settings, training, kwargs, ITEMS))
    if settings.eval_tries:
        sampled = replace(chosen[0], name=f"{chosen[0].name}, sampled", suffix=SAMPLED)
        heat, tries = settings.temperature, settings.eval_tries
        chosen.append(replace(sampled, temperature=heat, tries=tries))
    return tuple(chosen)


def played_with(
    settings: TrainSettings, planned: Iterable[Evaluation]
) -> Iterator[Mapping[str, Any]]:
    """Yield the environment arguments of a run: those of training, then those of evaluations."""
    yield settings.training_kwargs
    yield from (each.env_kwargs for each in planned if each.suffix != SAMPLED)


def separated(settings: TrainSettings) -> TrainSettings:
    """Return the settings, changed so that training and evaluation share no tasks.

    Training tasks are removed from the evaluation. If no evaluation tasks would remain, evaluation
    tasks are removed from training instead. If no training tasks would remain either, the two sets
    are identical and are divided by item if possible, otherwise by task. If the tasks cannot be
    divided, the settings are returned unchanged.

    Raises:
        ConfigurationError: If the environment cannot be made.
    """
    environment = _made(settings, settings.training_kwargs)
    training, family = environment.tasks, environment.family
    evaluation = _made(settings, settings.evaluation_kwargs).tasks
    left = len(unseen(evaluation, training, TASKS, family))
    how: Separation | None = None
    if 0 < left < len(evaluation):
        how = "evaluation without training"
    elif not left and len(unseen(training, evaluation, TASKS, family)):
        how = "training without evaluation"
    elif not left and divided(training, family):
        how = "divided"
        settings = settings.model_copy(update={"eval_split": settings.split})
    return settings.model_copy(update={"separation": how})


def selection_source(planned: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation that provides selection tasks: the one on unseen items if it exists."""
    return next((each for each in planned if len(each.unseen) > 1), planned[0])


def choose_tasks(
    settings: TrainSettings, planned: Sequence[Evaluation]
) -> tuple[dict[str, list[str]], list[str]]:
    """Choose the tasks of the evaluations, and selection tasks that no evaluation uses.

    Selection tasks are played during training to choose a checkpoint. An accuracy on these tasks
    would be biased upward, so evaluations exclude them, even if they have different ids. Selection
    tasks are the last tasks of their set, at most a third of the set.

    Returns:
        The task ids of each evaluation, by the suffix of the evaluation, and the ids of the
        selection tasks. There are
        no selection tasks if `eval_every` is 0 or if there are too few tasks.

    Raises:
        ConfigurationError: If no task is playable, or there are too few for the selection tasks
            that early stopping or `checkpoint=best` need.
    """
    chosen: dict[str, list[str]] = {}
    envs = [_made(settings, each.env_kwargs) for each in planned]
    for each, env in zip(planned, envs, strict=True):
        tasks = env.tasks.shuffle(SEED).first_playable(each.played)
        chosen[each.suffix] = chosen[""] if each.suffix == SAMPLED else tasks.ids
        if not len(tasks):
            raise ConfigurationError(tasks.nothing_playable())
    if not settings.eval_every:
        return chosen, []
    source, wanted = selection_source(planned), settings.selection_tasks
    env = envs[planned.index(source)]
    enough = 2 * (wanted + sum(map(len, chosen.values())))
    order = env.tasks.shuffle(SEED).first_playable(enough).ids
    selection = order[len(order) - min(wanted, len(order) // 3) :]
    taken = {mark for task_id in selection for mark in _marks(env, task_id)}
    left = {
        each.suffix: [i for i in chosen[each.suffix] if not _marks(env, i) & taken]
        for each, env in zip(planned, envs, strict=True)
    }
    if selection and all(left.values()):
        return left, selection
    if settings.patience is None and settings.checkpoint == "last":
        return chosen, []
    raise ConfigurationError(
        f"{source.source} has only {len(order)} tasks, which is too few for separate evaluations"
        " during the training and before and after it. Remove patience and checkpoint=best."
    )


def _marks(env: ToolEnv[Any], task_id: str) -> frozenset[str]:
    """Return keys that equal tasks share, even if their ids differ."""
    return env.family.marks(env.tasks.get(task_id), TASKS) or frozenset({task_id})


def _evaluation(
    settings: TrainSettings, training: ToolEnv[Any], env_kwargs: dict[str, Any], suffix: str = ""
) -> Evaluation:
    tasks, family = _made(settings, env_kwargs).tasks, training.family
    kinds = kinds_unseen(tasks, training.tasks, family.kinds[:2], family)
    held_out = kinds if TASKS in kinds else ()
    name = f"unseen {held_out[-1]}" if held_out else SEEN
    played = max(1, settings.eval_tasks // FEWER) if suffix else settings.eval_tasks
    return Evaluation(name, suffix, env_kwargs, tasks.name, held_out, len(tasks), played)


def _split_of(settings: TrainSettings, training: ToolEnv[Any]) -> str | None:
    """Return the split of a data set for unseen items, or else the split of the evaluation."""
    split = f"{settings.eval_split}-{training.family.kinds[1]}"
    dataset = settings.env_kwargs.get("dataset")
    try:
        splits = training.family.splits(dataset) if isinstance(dataset, str) else ()
    except ConfigurationError:  # not a data set on this machine, for example an id on the hub
        splits = ()
    return split if split in splits else settings.eval_split


def _made(settings: TrainSettings, env_kwargs: Mapping[str, Any]) -> ToolEnv[Any]:
    return registration.make(settings.env_id, **env_kwargs)


# The conclusion about the gain of a run.


def gain_sentence(results: Sequence[Mapping[str, Any]], settings: TrainSettings) -> str:
    """Return a few sentences on whether the accuracy changed by more than chance.

    Args:
        results: The evaluations of a summary, with `name`, `held_out`, `temperature`, and the
            results `before` (None after supervised training alone) and `after` with `accuracy`,
            `interval` and `episodes`. The conclusion is based on the sampled evaluation if there is
            one, otherwise on the first evaluation.
        settings: Settings of the run.
    """
    said, changes = [], dict[bool, float]()
    for each in results:
        before, after, heat = each["before"] or {}, each["after"], each["temperature"]
        if after["accuracy"] is None or (before and before["accuracy"] is None):
            continue
        how = f"sampled at temperature {heat:g}" if heat else "greedy"
        count = after["episodes"]
        end = f"{after['accuracy']:.1%} ({how}, {count} episode{'s' * (count != 1)})"
        change = after["accuracy"] - before["accuracy"] if before else 0.0
        if not before:
            end = f"is {end} after supervised training alone"
        elif not change:
            end = f"stayed at {end}"
        else:
            end = f"{'rose' if change > 0 else 'fell'} from {before['accuracy']:.1%} to {end}"
            if within_chance(before, after):
                end, change = f"{end}, a difference within chance", 0.0
        said.append(f"Accuracy on {each['name'].removesuffix(', sampled')} {end}.")
        changes.setdefault(heat > 0, change)
    if not said:
        return "No episode was scored, so the gain is unknown."
    change = changes.get(True, changes.get(False, 0.0))
    if settings.control is not None:
        said.append(
            "Rewards were shuffled, so the model could not learn from them. A difference beyond"
            " chance has another cause."
        )
    elif change < 0:
        said.append("Training reduced accuracy: look at validity and entropy in the report.")
    elif change > 0 and settings.demonstrator == "sloppy" and settings.sft_steps:
        said.append(
            "The gain is elicitation, not a new skill: the demonstrations contained the correct"
            " behavior, and reinforcement learning made it more likely."
        )
    elif change > 0:
        said.append(
            "Accuracy does not show whether the gain is a new skill, since reinforcement learning"
            " reinforces behavior that the model already had. Compare pass@k before and after"
            " (`--eval-tries 8`, or `toolgym eval --k 8` on checkpoints/sft)."
        )
    if not results[0]["held_out"]:
        said.append("No tasks were held out, so this result does not apply to other tasks.")
    return " ".join(said)


def within_chance(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether the 95 % interval of the difference between two accuracies contains 0.

    The two intervals are combined as if the samples were independent. This is conservative, since
    both evaluations play the same tasks.
    """
    one, other = (Effect(f["accuracy"], *f["interval"]) for f in (before, after))
    found = difference(one, other)
    return found.low <= 0 <= found.high
