"""What a training will take on this machine, phase by phase, from a minute's measurement.

Three speeds decide: of imitation, of an update, and of rollouts. They are those of the real code,
an optimizer step of the warm-up and a step of `ReferenceTrainer` with one group, on a model that is
thrown away afterwards. Tokens are counted as the phases count them, prompts included, so what the
code saves on prompts that are alike is in the speed.

A model that was not trained yet does not end its turns, so its rollouts are as long as they may be,
and a step in the plan is reckoned by the answers that the recipe expects. The plan is careful: a
full step has more groups side by side than the one that was measured.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.config import reference_options
from adapters.reference.trainer import ReferenceTrainer
from adapters.training.guards.checks import GUARDS
from adapters.training.models.demonstrations import demonstrate
from adapters.training.models.supervised import WarmupSettings, warm_up
from adapters.training.models.tokenized_examples import Example, examples_of
from adapters.training.runs.evaluations import Evaluation
from adapters.training.runs.preparation import adapter_config
from adapters.training.runs.settings import TrainSettings
from toolgym import registration

_LOOKED_AT: Final = 16  # demonstrations whose length is taken for that of all
_READING: Final = 3.0  # a forward pass takes a third of forward and backward
_PREFLIGHT: Final = 128  # rollouts of a preflight


@dataclass(frozen=True)
class Speeds:
    """The speeds of a model on a machine, and the lengths of its texts.

    Attributes:
        imitation: Tokens of transcripts that a second of warm-up learns from.
        update: Tokens of rollouts, with their prompts, that a second of GRPO learns from.
        writing: Tokens that a second of rollouts writes.
        transcript: Mean tokens of a demonstration.
        prompt: Mean tokens of a prompt.
        peak_memory: MiB, of the process.
    """

    imitation: float
    update: float
    writing: float
    transcript: float
    prompt: float
    peak_memory: float


def measure(
    settings: TrainSettings,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    scratch: Path,
) -> Speeds:
    """Measure a model, whose weights are changed by it.

    Args:
        scratch: A folder on the disk of the run; what is written there is removed.

    Raises:
        ConfigurationError: The environment cannot be made, or the trainer does not take the model.
    """
    examples = _examples(settings, tokenizer)
    imitation = _imitation_speed(settings, model, examples)
    metrics = _step(settings, model, tokenizer, scratch)
    size = settings.group_size
    prompt = fmean(example.learn.index(True) for example in examples)
    written = size * metrics["completion_length"]
    return Speeds(
        imitation=imitation,
        update=(size * prompt + written) / metrics["update_seconds"],
        writing=written / metrics["rollout_seconds"],
        transcript=fmean(len(example.ids) for example in examples),
        prompt=prompt,
        peak_memory=metrics["peak_memory"],
    )


def _imitation_speed(
    settings: TrainSettings, model: PreTrainedModel, examples: Sequence[Example]
) -> float:
    """Tokens that a second learns from, in the second step: the first one gets memory as well."""
    batch = list(examples[: settings.warmup_batch])
    ends: list[float] = []
    how = WarmupSettings(
        2,
        len(batch),
        1e-6,
        ramp=0,
        memory=settings.memory,
        tokens_per_pass=settings.warmup_tokens_per_pass,
        alike=settings.warmup_alike,
    )
    warm_up(model, batch, how, lambda _: ends.append(time.monotonic()))
    return sum(len(example.ids) for example in batch) / (ends[1] - ends[0])


def _examples(settings: TrainSettings, tokenizer: PreTrainedTokenizerBase) -> list[Example]:
    """Demonstrations, as many of each item in a row as a batch of the warm-up has alike."""
    kwargs = settings.training_kwargs
    env = registration.make(settings.env_id, **kwargs)
    wanted = max(_LOOKED_AT, settings.warmup_batch)
    tasks = list(env.tasks.shuffle(settings.seed))
    items = list(dict.fromkeys(task.item for task in tasks))
    items = items[: math.ceil(wanted / settings.warmup_alike)]
    each = max(settings.warmup_alike, math.ceil(wanted / len(items)))
    chosen: dict[str, list[str]] = {item: [] for item in items}
    for task in tasks:
        own = chosen.get(task.item)
        if own is not None and len(own) < each and env.tasks.refusal_of(task) is None:
            own.append(task.id)
    ids = [task_id for own in chosen.values() for task_id in own]
    transcripts = demonstrate(
        settings.env_id,
        len(ids),
        demonstrator="expert",
        seed=settings.seed,
        task_ids=ids,
        **kwargs,
    )
    schemas = env.tool_schemas()
    return [example for each in transcripts for example in examples_of(each, schemas, tokenizer)]


def _step(
    settings: TrainSettings,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    scratch: Path,
) -> Mapping[str, float]:
    """The metrics of one step with one group."""
    config = reference_options(
        settings,
        steps=1,
        prompts=1,
        learn_from_unfinished=True,
        sampling=None,
        # An update is to be made and timed, whatever a model that was not trained yet writes.
        guards={"actions": {guard.name: () for guard in GUARDS}},
    )
    told: list[dict[str, float]] = []
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".speed-", dir=scratch) as folder:
        ReferenceTrainer(
            model,
            tokenizer,
            settings.env_id,
            Path(folder),
            config,
            env_kwargs=settings.training_kwargs,
            on_metrics=lambda step, metrics: told.append(metrics),
            adapter=adapter_config(settings),
        ).train()
    return told[0]


@dataclass(frozen=True)
class Phase:
    """A phase in a plan.

    Attributes:
        title: As the phases of a run call themselves; several of them where they are told as one.
        seconds: What it is expected to take.
        because: What that is reckoned from.
    """

    title: str
    seconds: float
    because: str

    def took(self, seconds: Mapping[str, float]) -> float:
        """What it took: the sum of all phases whose title begins so or ends so."""
        return sum(
            value
            for title, value in seconds.items()
            if title == self.title or title.endswith(f", {self.title}")
        )


def plan(
    settings: TrainSettings,
    evaluations: Sequence[Evaluation],
    speeds: Speeds,
    *,
    answer_tokens: int,
    draws: float,
) -> list[Phase]:
    """The phases of a training that take time, in their order.

    Args:
        evaluations: That it makes, before and after.
        answer_tokens: Mean tokens that a trained model writes in an episode.
        draws: Groups that a step draws for each that it learns from.
    """
    tokens = settings.warmup_steps * settings.warmup_batch * speeds.transcript
    batch = settings.prompts * settings.group_size
    rollouts = batch * draws * answer_tokens / speeds.writing
    update = batch * (speeds.prompt + answer_tokens) / speeds.update
    episodes = sum(min(each.played, each.tasks) * each.tries for each in evaluations)
    reading = speeds.prompt / (_READING * speeds.update)
    each_episode = reading + answer_tokens / speeds.writing
    found = f"{episodes:,} episodes"
    phases = [
        Phase(
            "warm-up",
            tokens / speeds.imitation,
            f"{tokens:,.0f} tokens, {settings.warmup_steps} steps",
        ),
        Phase(
            "preflight",
            _PREFLIGHT * each_episode if settings.preflight else 0.0,
            f"{_PREFLIGHT} rollouts",
        ),
        # Before it is trained by its rewards it was warmed up, so its answers have an end.
        Phase("before", episodes * each_episode, found),
        Phase(
            "GRPO",
            settings.steps * (rollouts + update),
            f"{settings.steps} steps of {rollouts:.0f} s of rollouts and {update:.0f} s of update",
        ),
        Phase("after", episodes * each_episode, found),
    ]
    return [phase for phase in phases if phase.seconds]


def to_json(speeds: Speeds) -> dict[str, float]:
    """The speeds as plain data, with which `Speeds` is made again."""
    return dataclasses.asdict(speeds)
