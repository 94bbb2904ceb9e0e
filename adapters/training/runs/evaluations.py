"""The evaluations of a run: their tasks, which of them are held out, and the verdict on the gain.

Whether tasks are held out is looked up in the tasks of training and evaluation, not taken from the
names of splits. If the two splits share tasks (a file that serves as every split, `--split all`, an
environment without splits), `separated` keeps them apart. If that is impossible, because there is
one task only, nothing is called held out.

A data set may have tasks on databases (or other items) that training has, and tasks on databases
that it does not have. Then there are two evaluations, `unseen tasks` and `unseen databases`.

The first evaluation is played greedily, and again at the sampling temperature of the training.
Greedy decoding plays the likeliest of the model's habits. If two habits are about as likely, noise
decides between them: a control with shuffled rewards went from 15 to 77 % greedily, and from 28 to
32 % when sampled.
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
"""Factor by which fewer tasks are played on unseen items. A model that is lost there uses up its
steps: the tiny model takes 0.5 s for such a task, and 0.02 s for one on a database it knows."""
SEEN: Final = "tasks that are trained on"
"""Name of an evaluation whose tasks are not held out."""
SEED: Final = 0
"""Seed of the choice of tasks, the same for all runs, and of the seeds in records of episodes."""


@dataclass(frozen=True)
class Evaluation:
    """An evaluation of a run, made before and after reinforcement learning.

    Attributes:
        name: `unseen databases`, `unseen tasks` etc., or `SEEN`; ends with `, sampled` if its tasks
            are not played greedily.
        suffix: Suffix of the phases of its rollouts: "", `ITEMS` or `SAMPLED`.
        env_kwargs: Arguments of its environment.
        source: Name of its set of tasks.
        unseen: The kinds (the task, its item) in which all of its tasks are unseen.
        tasks: Number of tasks in the set.
        played: Maximum number of tasks that are played.
        temperature: Sampling temperature; 0 is greedy.
        tries: Tries per task.
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
        """Whether no task of it is trained on."""
        return TASKS in self.unseen

    def to_json(self) -> dict[str, Any]:
        """The evaluation in `summary.json`, without its figures."""
        names = ("name", "source", "tasks", "unseen", "temperature", "tries")
        facts = {name: getattr(self, name) for name in names}
        return {**facts, "held_out": self.is_held_out}


def evaluations(settings: TrainSettings) -> tuple[Evaluation, ...]:
    """The evaluations of a run; the verdict is on the first.

    Raises:
        ConfigurationError: The environment cannot be made.
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
    """The arguments of the environments of a run: that of the training, then of evaluations."""
    yield settings.training_kwargs
    yield from (each.env_kwargs for each in planned if each.suffix != SAMPLED)


def separated(settings: TrainSettings) -> TrainSettings:
    """The settings, changed so that training and evaluation share no task.

    Tasks of the training are left out of the evaluation. If none would be left, tasks of the
    evaluation are left out of the training. If none would be left there either, the two are one
    set, which is divided by item, or else by task. If it cannot be divided, the settings stay.

    Raises:
        ConfigurationError: The environment cannot be made.
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
    """The evaluation that selection tasks are taken from: on unseen items, if there is one."""
    return next((each for each in planned if len(each.unseen) > 1), planned[0])


def choose_tasks(
    settings: TrainSettings, planned: Sequence[Evaluation]
) -> tuple[dict[str, list[str]], list[str]]:
    """Choose the tasks of the evaluations, and selection tasks that none of them plays.

    A figure by which a checkpoint was chosen flatters it. So selection tasks, which are played
    during the training, are the last ones of their set, a third of it at most, and evaluations
    leave them out, also under other ids.

    Returns:
        The task ids of each evaluation by its suffix, and those of the selection tasks; these are
        empty if `eval_every` is 0, or if there are too few tasks.

    Raises:
        ConfigurationError: No task is playable, or there are too few for the selection tasks that
            early stopping or `checkpoint=best` need.
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
        f"{source.source} has {len(order)} tasks: too few to evaluate during the training and"
        " before and after it on different ones. Leave out patience and checkpoint=best."
    )


def _marks(env: ToolEnv[Any], task_id: str) -> frozenset[str]:
    """Keys that equal tasks share, whatever their ids."""
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
    """The split that a data set has for unseen items, else that of the evaluation."""
    split = f"{settings.eval_split}-{training.family.kinds[1]}"
    dataset = settings.env_kwargs.get("dataset")
    try:
        splits = training.family.splits(dataset) if isinstance(dataset, str) else ()
    except ConfigurationError:  # not a data set on this machine, such as a name on the hub
        splits = ()
    return split if split in splits else settings.eval_split


def _made(settings: TrainSettings, env_kwargs: Mapping[str, Any]) -> ToolEnv[Any]:
    return registration.make(settings.env_id, **env_kwargs)


# The verdict on the gain of a run.


def gain_sentence(results: Sequence[Mapping[str, Any]], settings: TrainSettings) -> str:
    """A few sentences on what changed, and whether the difference is within chance.

    Args:
        results: The evaluations of a summary, with `name`, `held_out`, `temperature`, and the
            figures `before` (None after imitation alone) and `after` with `accuracy`, `interval`
            and `episodes`. The verdict is on the sampled evaluation if there is one, else on the
            first.
        settings: The settings of the run.
    """
    said, changes = [], dict[bool, float]()
    for each in results:
        before, after, heat = each["before"] or {}, each["after"], each["temperature"]
        if after["accuracy"] is None or (before and before["accuracy"] is None):
            continue
        how = f"sampled at temperature {heat:g}" if heat else "greedy"
        end = f"{after['accuracy']:.1%} ({how}, {after['episodes']} episodes)"
        change = after["accuracy"] - before["accuracy"] if before else 0.0
        if not before:
            end = f"is {end} after imitation alone"
        elif not change:
            end = f"stayed at {end}"
        else:
            end = f"{'rose' if change > 0 else 'fell'} from {before['accuracy']:.1%} to {end}"
            if within_chance(before, after):
                end, change = f"{end}, a difference within chance", 0.0
        said.append(f"Accuracy on {each['name'].removesuffix(', sampled')} {end}.")
        changes.setdefault(heat > 0, change)
    if not said:
        return "No episode could be scored, so nothing can be said about a gain."
    change = changes.get(True, changes.get(False, 0.0))
    if settings.control is not None:
        said.append(
            "Rewards were shuffled, so nothing could be learned from them: a difference beyond"
            " chance has another cause."
        )
    elif change < 0:
        said.append("Training did harm: look at validity and entropy in the report.")
    elif change > 0 and settings.demonstrator == "sloppy" and settings.sft_steps:
        said.append(
            "The gain is elicitation, not a new skill: the demonstrations showed the right way"
            " among others, and reinforcement learning made it likelier."
        )
    elif change > 0:
        said.append(
            "Accuracy does not tell whether the gain is a new skill: reinforcement learning makes"
            " likelier what a model did before now and then. Compare pass@k before and after"
            " (`--eval-tries 8`, or `toolgym eval --k 8` on checkpoints/sft)."
        )
    if not results[0]["held_out"]:
        said.append(
            "Nothing was held out, so this says nothing about tasks that are not trained on."
        )
    return " ".join(said)


def within_chance(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the difference of two accuracies is within its 95 % interval around 0.

    The intervals are joined as those of independent samples, which is conservative, since both
    evaluations played the same tasks.
    """
    one, other = (Effect(f["accuracy"], *f["interval"]) for f in (before, after))
    found = difference(one, other)
    return found.low <= 0 <= found.high
