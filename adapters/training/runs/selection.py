"""Evaluation while a model is trained: which checkpoint is the best, and when to stop.

Every so many steps the model plays some tasks greedily that it is not trained on, on unseen
databases where the data set has them. Whatever is chosen by an evaluation looks better on its tasks
than it is, since some of what it did there was luck. So these *selection tasks* are none of the
tasks that the evaluations before and after play: what those report is not what was chosen by.

Evaluating changes nothing: it has random numbers of its own, and the model trains on with the same
weights, to the bit, as without. Its figures stand in `metrics.jsonl` under the step after which
they were taken, so a run that is taken up again knows them, and does the others anew.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.low_rank import Adapter
from adapters.training.runs.evaluations import Evaluation, source_of
from adapters.training.runs.playing import MEASURED_ON, Asked, Play, evaluation_of
from adapters.training.runs.preparation import Saved, save
from adapters.training.runs.progress import ProgressListener
from adapters.training.settings import TrainSettings
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord
from toolgym.runs.run import SAMPLED, SELECTION, Run
from toolgym.unseen import TASKS

BEST: Final = "best"
Figures = dict[str, Any]
_SHARE: Final = 3  # of the tasks that there are, selection takes one in so many at most


@dataclass(frozen=True)
class Division:
    """The tasks that choose a checkpoint, and those that report on it: they share none.

    Attributes:
        source: The evaluation that the selection tasks are of: that on unseen items, if there is
            one, else the first.
        selection: Their ids, in the order in which they are played.
        reports: The evaluations before and after, with the ids of their tasks.
    """

    source: Evaluation
    selection: tuple[str, ...]
    reports: tuple[Evaluation, ...]


def divide(settings: TrainSettings, planned: Sequence[Evaluation]) -> Division:
    """Set selection tasks apart from those that the evaluations report on.

    The reports play what they would have played without; where there are too few tasks for both,
    selection takes a third at most, and they lose those. Two tasks that ask the same under two ids
    count as one.

    Raises:
        ConfigurationError: There are too few tasks to be divided.
    """
    greedy = [each for each in planned if each.suffix != SAMPLED]
    source = source_of(planned)
    envs = {each.suffix: _made(settings, each) for each in greedy}
    reports = {
        each.suffix: envs[each.suffix].tasks.shuffle(MEASURED_ON).first_playable(each.played).ids
        for each in greedy
    }
    seen = {m for suffix, ids in reports.items() for m in _marks(envs[suffix], ids)}
    env, wanted = envs[source.suffix], settings.selection_tasks
    enough = 2 * (wanted + sum(map(len, reports.values())))  # some may be the same by other ids
    order = env.tasks.shuffle(MEASURED_ON).first_playable(enough).ids
    if len(order) < enough:
        wanted = min(wanted, len(order) // _SHARE)
    chosen = [each for each in order if not _marks(env, [each]) & seen][:wanted]
    if len(chosen) < wanted:
        chosen = order[len(order) - wanted :]
        taken = _marks(env, chosen)
        for suffix, ids in reports.items():
            reports[suffix] = [i for i in ids if not _marks(envs[suffix], [i]) & taken]
    if not chosen or not all(reports.values()):
        raise ConfigurationError(
            f"{source.source} has {len(order)} tasks: too few to choose a checkpoint by some and"
            " report on others. Set eval_every and sft_eval_every to 0."
        )
    first = planned[0].suffix
    named = (tuple(reports.get(each.suffix, reports[first])) for each in planned)
    with_ids = [
        replace(each, task_ids=ids, played=len(ids))
        for each, ids in zip(planned, named, strict=True)
    ]
    return Division(source, tuple(chosen), tuple(with_ids))


def _made(settings: TrainSettings, evaluation: Evaluation) -> ToolEnv[Any]:
    return registration.make(settings.env_id, **evaluation.env_kwargs)


def _marks(env: ToolEnv[Any], task_ids: Sequence[str]) -> set[str]:
    """What makes tasks the same, whatever their ids."""
    found = {m for each in task_ids for m in env.family.marks(env.tasks.get(each), TASKS)}
    return found or set(task_ids)


def best_of(history: Sequence[Figures]) -> Figures | None:
    """The evaluation with the highest accuracy, the earliest of equals; None without any."""
    return max(history, key=_height, default=None)


def _height(figures: Figures) -> float:
    accuracy = figures.get("held_out_accuracy")
    return float(accuracy) if accuracy is not None else -1.0


def is_enough(history: Sequence[Figures], patience: int | None) -> bool:
    """Whether so many evaluations in a row had no accuracy that is a new best.

    >>> [is_enough([{"held_out_accuracy": a} for a in (0.2, 0.4, 0.3, 0.4)], n) for n in (2, 3)]
    [True, False]
    """
    best = best_of(history)
    return bool(patience and best and len(history) - 1 - history.index(best) >= patience)


@dataclass(frozen=True)
class Stage:
    """A part of the training that is watched.

    Attributes:
        name: In words.
        phase: Of its evaluations, in the run folder.
        folder: The name of the folder of its best weights.
        every: Steps between evaluations.
        steps: Its last step, after which there is one in any case.
        patience: See `TrainSettings.patience`.
        kept: Whether it results in its last or in its best weights.
        first: The first step that is evaluated.
    """

    name: str
    phase: str
    folder: str
    every: int
    steps: int
    patience: int | None
    kept: str
    first: int = 0

    def is_due(self, step: int, done: Sequence[int]) -> bool:
        """Whether there is to be an evaluation after a step, where some steps have theirs."""
        if step in done or step < self.first:
            return False
        passed = step // self.every > max((s for s in done if s < step), default=0) // self.every
        return passed or step >= self.steps or (step == 0 and not done)


def stages(settings: TrainSettings) -> dict[str, Stage]:
    """The stages of a run that are watched, by the phase of their metrics."""
    grpo = Stage(
        "GRPO",
        SELECTION,
        BEST,
        settings.eval_every,
        settings.steps,
        settings.patience,
        settings.checkpoint,
    )
    both = {"grpo": grpo}
    return {phase: each for phase, each in both.items() if each.every}


class HeldOut:
    """The evaluations of one stage of a run, on selection tasks.

    Args:
        run: Its metrics hold the figures, its checkpoints the best weights.
        play: How tasks are played.
        watch: Shows how far an evaluation is.
    """

    def __init__(
        self,
        run: Run,
        settings: TrainSettings,
        stage: Stage,
        division: Division,
        play: Play,
        watch: ProgressListener,
    ) -> None:
        self.stage = stage
        self._run, self._settings, self._division = run, settings, division
        self._play, self._watch = play, watch

    @property
    def history(self) -> list[Figures]:
        """The figures so far, by step."""
        return sorted(self._run.metrics(self.stage.phase), key=lambda figures: figures["step"])

    @property
    def is_over(self) -> bool:
        """Whether what was evaluated so far ends the stage."""
        return is_enough(self.history, self.stage.patience)

    def begin_again_after(self, step: int) -> None:
        """Forget what came after a step, or all of it where the step is below 0."""
        self._run.cut_metrics(self.stage.phase, step)
        self._run.cut_rollouts(self.stage.phase, step)
        for kept in self._folders():
            if kept > step:
                shutil.rmtree(self._folder(kept))

    def check(
        self,
        step: int,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        saved: Saved | None = None,
    ) -> bool:
        """Evaluate if it is time for it, and say whether the stage should end.

        Args:
            step: As many updates were made.
            model: What plays.
            saved: What is kept of it if it is the best so far, such as its adapter; None: itself.
        """
        history = self.history
        if self.stage.is_due(step, [each["step"] for each in history]):
            with saved.merged() if isinstance(saved, Adapter) else nullcontext():
                figures, records = self._measured(step, model, tokenizer)
            history = [*history, figures]
            if best_of(history) is figures:
                save(saved or model, tokenizer, self._folder(step), self._settings)
            self._run.cut_rollouts(self.stage.phase, step - 1)
            where = {"phase": self.stage.phase, "step": step}
            self._run.log_rollouts({**where, **record.to_json()} for record in records)
            self._run.log_metrics({"phase": self.stage.phase, **figures})
            self._prune(history)
        return is_enough(history, self.stage.patience)

    def _measured(
        self, step: int, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
    ) -> tuple[Figures, Sequence[EpisodeRecord]]:
        began, tasks = time.perf_counter(), self._division.selection
        asked = Asked(self._division.source.env_kwargs, tasks)
        title = f"{self._division.source.name}, step {step}"
        was_training = model.training
        with self._watch.phase(title, len(tasks)) as advance, torch.random.fork_rng():
            records = self._play(
                model, tokenizer, self._settings, asked, lambda done: advance(done, "")
            )
        model.train(was_training)
        found = evaluation_of(asked, records)
        low, high = found.interval
        return {
            "step": step,
            "held_out_accuracy": None if math.isnan(found.accuracy) else found.accuracy,
            "held_out_low": low,
            "held_out_high": high,
            "held_out_answered": found.answered,
            "held_out_validity": found.validity,
            "held_out_episodes": sum(record.scored for record in records),
            "evaluation_seconds": time.perf_counter() - began,
        }, records

    def kept(self) -> Path | None:
        """The folder of the weights that the stage results in; None: those that it ended with.

        Raises:
            ConfigurationError: The best weights are gone.
        """
        best = best_of(self.history)
        if self.stage.kept != BEST or best is None:
            return None
        folder = self._folder(best["step"])
        folder = folder if folder.is_dir() else self._run.checkpoints / self.stage.folder
        if not folder.is_dir():
            raise ConfigurationError(
                f"the best weights of {self._run.path} are not in {folder} any more: bring them"
                " back, or begin a new run."
            )
        return folder

    def finish(self) -> None:
        """Give the best weights their name, `best`, and remove all others."""
        best = best_of(self.history)
        if best is None or not self._folder(best["step"]).is_dir():
            return
        place = self._run.checkpoints / self.stage.folder
        shutil.rmtree(place, ignore_errors=True)
        self._folder(best["step"]).rename(place)
        for step in self._folders():
            shutil.rmtree(self._folder(step))

    def summary(self) -> Figures:
        """What came of it, as a summary has it; empty as long as nothing was evaluated."""
        history, stage = self.history, self.stage
        best = best_of(history)
        if best is None or best["held_out_accuracy"] is None:
            return {}
        last = history[-1]
        kept = best if stage.kept == BEST else last
        return {
            "evaluations": len(history),
            "best": _told(best),
            "last": _told(last),
            "checkpoint": stage.kept,
            "step": kept["step"],
            "steps": stage.steps,
            "stopped_early": is_enough(history, stage.patience) and last["step"] < stage.steps,
        }

    def _folder(self, step: int) -> Path:
        return self._run.checkpoints / f"{self.stage.folder}-{step}"

    def _folders(self) -> list[int]:
        """The steps whose weights are kept."""
        return _steps(self._run.checkpoints, self.stage.folder)

    def _prune(self, history: Sequence[Figures]) -> None:
        """Remove weights that are the best no more, nor at a checkpoint a run may go back to."""
        needed = [history]
        for back in _steps(self._run.checkpoints, "checkpoint"):
            needed.append([each for each in history if each["step"] <= back])
        retained = {best["step"] for each in needed if (best := best_of(each)) is not None}
        for step in self._folders():
            if step not in retained:
                shutil.rmtree(self._folder(step))


def _steps(checkpoints: Path, name: str) -> list[int]:
    numbers = (path.name.removeprefix(f"{name}-") for path in checkpoints.glob(f"{name}-*"))
    return sorted(int(number) for number in numbers if number.isdecimal())


def _told(figures: Figures) -> Figures:
    ends = [figures["held_out_low"], figures["held_out_high"]]
    return {"step": figures["step"], "accuracy": figures["held_out_accuracy"], "interval": ends}


def selection_summary(division: Division, watched: Mapping[str, HeldOut]) -> Figures:
    """What a summary tells of the evaluations while the model was trained."""
    source = division.source
    return {
        "name": source.name,
        "source": source.source,
        "unseen": list(source.unseen),
        "tasks": len(division.selection),
        "shared_with_reports": 0,
        **{phase: each.summary() for phase, each in watched.items()},
    }


def selection_sentence(selection: Mapping[str, Any]) -> str:
    """Which weights a run ended with, by which evaluations; and what they do not tell."""
    told = []
    for phase, name in (("warmup", "Imitation"), ("grpo", "GRPO")):
        stage = selection.get(phase)
        if not stage:
            continue
        best, last = stage["best"], stage["last"]
        end = f"ended early, after step {last['step']} of {stage['steps']}" * stage["stopped_early"]
        end = end or f"ended after step {last['step']}"
        which = "the best" if stage["checkpoint"] == BEST else "the last"
        told.append(
            f"{name} {end}, and was best after step {best['step']} ({best['accuracy']:.1%},"
            f" {best['interval'][0]:.1%} to {best['interval'][1]:.1%}, of {stage['evaluations']}"
            f" evaluations); kept are {which} weights, of step {stage['step']}."
        )
    where = (
        f"These evaluations played {selection['tasks']} tasks ({selection['name']}), and none of"
        " those that the figures before and after are of."
    )
    return " ".join([*told, where]) if told else ""
