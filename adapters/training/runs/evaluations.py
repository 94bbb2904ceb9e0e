"""Evaluations of a run: their tasks, what of them is held out, and the verdict on the gain.

The tasks of an evaluation are held out if training has none of them, which is looked up in the
tasks and not in the names of splits. Where the two splits share tasks (a file that serves as every
split, `--split all`, an environment without splits), `separated` takes them apart; where even that
cannot be, because there is one task only, nothing is called held out.

There are two sets of tasks where a data set has databases (or whatever its items are) that training
has not, besides tasks on those that it has: `unseen tasks` and `unseen databases`. Where every task
of the first is on an unseen database already, the first is both.

The first set is played greedily, and then sampled as in training. Greedily a model does the
likeliest of its habits, and where two are about as likely, a small push decides between them, even
one by noise: a control with shuffled rewards went from 15 to 77 % greedily, and from 28 to 32 % in
what it sampled. What training made likelier, the sampled figures tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adapters.training.models.demonstrations import HABITS, has_novice
from adapters.training.settings import Separation, TrainSettings
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.family import TaskFamily
from toolgym.intervals import Effect, difference
from toolgym.runs.run import ITEMS, SAMPLED
from toolgym.tasks import TaskSet
from toolgym.unseen import TASKS, divided, kinds_unseen, unseen

FEWER: Final = 4
"""So many times fewer tasks are played on unseen items. A model that is lost there takes all the
steps that it has: the tiny one needs 0.5 s for a task, and 0.02 s where it knows the database."""
SEEN: Final = "tasks that are trained on"
"""What the tasks of an evaluation are called that are not held out."""


@dataclass(frozen=True)
class Evaluation:
    """One set of tasks that the model is measured on, before and after.

    Attributes:
        name: What its tasks are to the training: `unseen databases`, `unseen tasks`, or `SEEN`;
            with `, sampled` behind it where they are not played greedily.
        suffix: Of the phases of its rollouts: empty, or that of evaluations on unseen items, or of
            sampled ones.
        source: How the set of tasks calls itself.
        unseen: In which kinds every task of it is unseen, out of the task and its item.
        tasks: How many it has.
        played: How many of them a run plays.
        temperature: At which the model samples; 0 is greedy.
        tries: At each task.
        task_ids: Those that are played; None: any `played` of them.
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
    task_ids: tuple[str, ...] | None = None

    @property
    def is_held_out(self) -> bool:
        """No task of it is trained on."""
        return TASKS in self.unseen

    def to_json(self) -> dict[str, Any]:
        """The evaluation in a summary, without its figures."""
        facts = {"name": self.name, "source": self.source, "tasks": self.tasks}
        how = {"temperature": self.temperature, "tries": self.tries}
        return {**facts, "held_out": self.is_held_out, "unseen": list(self.unseen), **how}


def evaluations(settings: TrainSettings) -> tuple[Evaluation, ...]:
    """The evaluations of a run, the one that its verdict goes by first.

    Raises:
        ConfigurationError: The environment cannot be made.
    """
    training = registration.make(settings.env_id, **settings.training_kwargs)
    items = training.family.kinds[1]
    chosen = [_evaluation(settings, training, settings.evaluation_kwargs)]
    if items not in chosen[0].unseen and settings.eval_split:
        own = {k: v for k, v in settings.training_kwargs.items() if k in ("split", "task_part")}
        kwargs = {**settings.env_kwargs, **settings.eval_env_kwargs}
        kwargs["split"] = _split_of(settings, training.family, items)
        tasks = _tasks(settings, {**kwargs, "task_part": None})
        if len(unseen(tasks, training.tasks, items, training.family)):
            kwargs |= {"task_part": {"unseen_by": own, "kind": items}}
            chosen.append(_evaluation(settings, training, kwargs, ITEMS))
    if settings.eval_tries:
        name, heat = f"{chosen[0].name}, sampled", settings.temperature
        tries = settings.eval_tries
        sampled = replace(chosen[0], name=name, suffix=SAMPLED, temperature=heat, tries=tries)
        chosen.append(sampled)
    return tuple(chosen)


def played_with(
    settings: TrainSettings, planned: Iterable[Evaluation]
) -> Iterator[Mapping[str, Any]]:
    """The arguments of the environments of a run: for training, then for what is measured on."""
    yield settings.training_kwargs
    yield from (each.env_kwargs for each in planned if each.suffix != SAMPLED)


def separated(settings: TrainSettings) -> TrainSettings:
    """The settings with what is to be done so that no task is both trained on and measured.

    What training has too is left out of the evaluation; if nothing is left of it then, what the
    evaluation has is left out of the training; and if that leaves nothing either, the two are one
    set, and it is divided by item, else by task. Where it cannot be, the settings stay.

    Raises:
        ConfigurationError: The environment cannot be made.
    """
    environment = registration.make(settings.env_id, **settings.training_kwargs)
    training, family = environment.tasks, environment.family
    evaluation = _tasks(settings, settings.evaluation_kwargs)
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


def _evaluation(
    settings: TrainSettings, training: ToolEnv[Any], env_kwargs: dict[str, Any], suffix: str = ""
) -> Evaluation:
    tasks, family = _tasks(settings, env_kwargs), training.family
    kinds = kinds_unseen(tasks, training.tasks, family.kinds[:2], family)
    held_out = kinds if TASKS in kinds else ()
    name = f"unseen {held_out[-1]}" if held_out else SEEN
    played = max(1, settings.eval_tasks // FEWER) if suffix else settings.eval_tasks
    return Evaluation(name, suffix, env_kwargs, tasks.name, held_out, len(tasks), played)


def _split_of(settings: TrainSettings, family: TaskFamily, items: str) -> str | None:
    """The split that a data set has for unseen items, else that of the evaluation."""
    split = f"{settings.eval_split}-{items}"
    dataset = settings.env_kwargs.get("dataset")
    try:
        splits = family.splits(dataset) if isinstance(dataset, str) else ()
    except ConfigurationError:  # nothing that it could look into, such as a name on the hub
        splits = ()
    return split if split in splits else settings.eval_split


def _tasks(settings: TrainSettings, env_kwargs: dict[str, Any]) -> TaskSet[Any]:
    return registration.make(settings.env_id, **env_kwargs).tasks


# The verdict on the gain of a run. Reinforcement learning with some thousand rollouts makes
# likelier what the model did before now and then. The tiny model's demonstrations hold the right
# way among others, so its gain is a choice among habits that it was shown, and the run says so.


SURER = (
    "Greedy decoding plays the likeliest of the model's habits, and where two are about as likely,"
    " noise can decide between them; the sampled accuracy is the better measure of what was"
    " learned."
)
"""Said if the greedy accuracy changed and the sampled one did not."""


def source_of(planned: Sequence[Evaluation]) -> Evaluation:
    """The evaluation by whose tasks a checkpoint is chosen: on unseen items, if there is one."""
    return next((each for each in planned if len(each.unseen) > 1), planned[0])


def gain_sentence(evaluations: Sequence[Mapping[str, Any]], settings: TrainSettings) -> str:
    """A few sentences on what changed and what kind of change it is.

    Args:
        evaluations: As in a summary: `name`, `held_out`, `temperature`, and the figures `before`
            and `after` with at least `accuracy`, `interval` and `episodes`. The verdict is on the
            first evaluation, and on the sampled one if there is one.
    """
    first, *others = evaluations
    if not _is_scored(first):
        return "No episode could be scored, so nothing can be said about a gain."
    others = [each for each in others if _is_scored(each)]
    sampled = next((each for each in others if each["temperature"]), None)
    sentences = [f"Accuracy on {first['name']} {_change_text(first)}."]
    if sampled is not None:
        sentences.append(f"On the same tasks it {_change_text(sampled)}.")
    sentences += _verdict(first, sampled, settings)
    sentences += [
        f"On {each['name']}, accuracy {_change_text(each)}."
        for each in others
        if not each["temperature"]
    ]
    if not first["held_out"]:
        sentences.append(
            "Nothing was held out, so this says nothing about tasks that are not trained on."
        )
    return " ".join(sentences)


def imitation_sentence(results: Sequence[Mapping[str, Any]]) -> str:
    """What was reached by imitation alone, for each evaluation that could be scored."""
    told = [
        f"Accuracy on {each['name']} is {each['after']['accuracy']:.1%} after imitation alone"
        f" ({_how(each['temperature'])}, {each['after']['episodes']} episodes)."
        for each in results
        if each["after"].get("accuracy") is not None
    ]
    return " ".join(told) or "No episode could be scored, so nothing can be said of what it knows."


def _is_scored(evaluation: Mapping[str, Any]) -> bool:
    ends = (evaluation["before"], evaluation["after"])
    return all(figures is not None and figures.get("accuracy") is not None for figures in ends)


def _change_text(evaluation: Mapping[str, Any]) -> str:
    """For example `rose from 8.3% to 16.7% (greedy, 24 episodes), a difference within chance`."""
    figures = evaluation["before"], evaluation["after"]
    before, after = (f"{each['accuracy']:.1%}" for each in figures)
    how = f"({_how(evaluation['temperature'])}, {figures[1]['episodes']} episodes)"
    if before == after:
        return f"stayed at {after} {how}"
    end = ", a difference within chance" if _is_chance(evaluation) else ""
    return f"{'rose' if _rose(evaluation) else 'fell'} from {before} to {after} {how}{end}"


def _how(temperature: float) -> str:
    return f"sampled at temperature {temperature:g}" if temperature else "greedy"


def _verdict(
    greedy: Mapping[str, Any], sampled: Mapping[str, Any] | None, settings: TrainSettings
) -> list[str]:
    """Return sentences on the kind of change; none if the change was within chance."""
    decisive = sampled or greedy
    said = []
    if settings.control is not None:
        said.append(f"Rewards were shuffled, so nothing could be learned: {_control(decisive)}")
    elif not _is_chance(decisive):
        harm = "Training did harm: look at validity and entropy in the report."
        said.append(_kind(settings) if _rose(decisive) else harm)
    is_surer = sampled is not None and _is_chance(sampled) and not _is_chance(greedy)
    return [*said, SURER] if is_surer else said


def _rose(evaluation: Mapping[str, Any]) -> bool:
    return bool(evaluation["after"]["accuracy"] > evaluation["before"]["accuracy"])


def _is_chance(evaluation: Mapping[str, Any]) -> bool:
    return within_chance(evaluation["before"], evaluation["after"])


def within_chance(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the two accuracies differ by less than two-sided 5 % chance allows.

    Their intervals are joined as those of independent samples, which is on the careful side, since
    both played the same tasks.
    """
    one, other = (Effect(f["accuracy"], *f["interval"]) for f in (before, after))
    found = difference(one, other)
    return found.low <= 0 <= found.high


def _control(evaluation: Mapping[str, Any]) -> str:
    if _is_chance(evaluation):
        where = " in what is sampled" if evaluation["temperature"] else ""
        return f"the difference{where} is within chance, as expected."
    if _rose(evaluation):
        return "something other than the rewards raised the accuracy."
    return "noise in place of rewards did harm, as it may."


def _kind(settings: TrainSettings) -> str:
    if settings.demonstrator == "sloppy" and settings.sft_steps:
        shown = (
            "The demonstrations were a novice's, who tries good calls and bad ones, and"
            " reinforcement learning made the good ones likelier."
            if has_novice(settings.env_id)
            else f"The demonstrations were played the right way in {HABITS['careful']:.0%} of the"
            " episodes, and reinforcement learning made that habit likelier."
        )
        return f"The gain is elicitation, not a new skill. {shown}"
    return (
        "Accuracy does not tell whether the gain is a new skill: reinforcement learning makes"
        " likelier what a model did before now and then. Compare pass@k before and after"
        " (`--eval-tries 8`, or `toolgym eval --k 8` on checkpoints/warmup)."
    )
