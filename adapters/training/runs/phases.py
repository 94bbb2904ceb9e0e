"""A training run from beginning to end: imitate, measure, reinforce, measure again.

    warm-up   demonstrations are played and imitated        -> checkpoints/warmup
    preflight can it learn anything at all?                 -> preflight.json
    before    on tasks that are not trained on              -> summary.json
    grpo      by whichever trainer was chosen               -> its own checkpoints
    after     on the same tasks                             -> checkpoints/final, summary.json

Each phase leaves its result in the run folder before the next begins, and a run that is taken up
again skips what is there; the trainer goes on from its own last checkpoint. So a run that was
killed at any moment ends with the files that it would have had without. Until its end its summary
says `interrupted`, because a killed process cannot say it any more. What the evaluations were on,
and what of it the training has not, stands in the summary's `evaluations`
(`adapters.training.runs.evaluations`); `before` and `after` are the figures of the first.

Where a launcher started several processes, the first does all of this, and the others train along.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.weights import read_weights, release_memory
from adapters.training.runs.evaluations import (
    Evaluation,
    evaluations,
    gain_sentence,
    imitation_sentence,
)
from adapters.training.runs.playing import (
    Asked,
    Done,
    Play,
    asked_for,
    evaluation_of,
    play_turn_by_turn,
)
from adapters.training.runs.preparation import (
    Saved,
    for_this_machine,
    load_prepared,
    prepare,
    save,
)
from adapters.training.runs.progress import Advance, ProgressListener
from adapters.training.runs.selection import (
    Division,
    HeldOut,
    divide,
    selection_sentence,
    selection_summary,
    stages,
)
from adapters.training.runs.settings import TrainSettings
from toolgym.records import EpisodeRecord
from toolgym.runs.run import Run

FINAL = "final"
_PAUSE = 0.2  # seconds


@dataclass(frozen=True)
class Grpo:
    """The job of a trainer: the reinforcement learning of a run.

    Attributes:
        settings: All settings of the run.
        run: Where metrics, rollouts and checkpoints go; the trainer's own last checkpoint in it is
            where to go on.
        advance: To be called after each step.
        is_main: Whether this is the process that writes; the others only train.
        held_out: The evaluations while it is trained; None where there are none, or another
            process makes them.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    settings: TrainSettings
    run: Run
    advance: Advance
    is_main: bool = True
    held_out: HeldOut | None = None

    def cut_off_after(self, step: int) -> None:
        """Forget what was told of steps that will be done again, and say where it stands."""
        if self.is_main:
            self.run.cut_metrics("grpo", step)
            self.run.cut_rollouts("grpo", step)
        if self.held_out is not None:
            self.held_out.begin_again_after(step)
        self.advance(step, "")

    def is_enough(self, step: int, saved: Saved | None = None) -> bool:
        """Evaluate after a step if it is time for it; whether the training should end.

        Args:
            saved: What is saved if it is the best so far, where that is not the job's model.
        """
        return self.held_out is not None and self.held_out.check(
            step, self.model, self.tokenizer, saved
        )

    def held_out_at(self, step: int) -> dict[str, float]:
        """The accuracy and number of episodes of an evaluation after a step; empty without one."""
        latest = self.held_out.history[-1:] if self.held_out is not None else []
        return {
            key: float(figures[key])
            for figures in latest
            for key in ("held_out_accuracy", "held_out_episodes")
            if figures["step"] == step and figures.get("held_out_accuracy") is not None
        }

    @property
    def is_over(self) -> bool:
        """Whether what was evaluated so far has ended the training."""
        return self.held_out is not None and self.held_out.is_over

    @property
    def kept(self) -> Path | None:
        """The folder of the weights that the settings keep; None: those that the model ends with.

        Raises:
            ConfigurationError: They are gone.
        """
        return self.held_out.kept() if self.held_out is not None else None

    def load_kept(self) -> None:
        """Put the weights into the model that its settings keep, once it is trained."""
        kept = self.kept
        if kept is not None:
            read_weights(self.model, kept)

    def tell_metrics(self, step: int, numbers: dict[str, float]) -> None:
        """Write down the numbers of a step, and show how far the run is."""
        self.run.log_metrics({"phase": "grpo", "step": step, **numbers})
        self.advance(step, f"reward {numbers.get('reward', float('nan')):.3f}")

    def tell_rollouts(self, step: int, records: list[dict[str, Any]]) -> None:
        """Keep some episodes of the batch that a step learns from."""
        self.run.log_rollouts({"phase": "grpo", "step": step, **record} for record in records)


Trainer = Callable[[Grpo], None]
Check = Callable[[Run, PreTrainedModel, PreTrainedTokenizerBase], None]


def train(
    run: Run,
    settings: TrainSettings,
    trainer: Trainer,
    watch: ProgressListener,
    check: Check | None = None,
    play: Play = play_turn_by_turn,
) -> dict[str, Any]:
    """Do what is left to do of a run, and return its summary.

    Args:
        run: New, or interrupted at any point.
        settings: Those it was created with; what they leave to the machine is decided here.
        check: Looks at the model before anything is spent on it, and raises if that is in vain.
        play: How the tasks of evaluations are played.

    Raises:
        ConfigurationError: Model, data set or environment cannot be had.
        EnvironmentFault: The environment keeps failing.
    """
    began, spent = time.monotonic(), float(run.summary.get("seconds") or 0.0)
    settings = for_this_machine(settings)

    def note(**figures: Any) -> dict[str, Any]:
        passed = round(spent + time.monotonic() - began, 1)
        so_far = {key: value for key, value in run.summary.items() if key != "diagnosis"}
        run.write_summary({**_blank(settings), **so_far, **figures, "seconds": passed})
        return run.summary

    def note_selection(phase: str) -> None:
        if division is None:
            note()
            return
        if phase in watched:
            watched[phase].finish()
        told = selection_summary(division, watched)
        note(selection=told, kept=selection_sentence(told))

    note(status="interrupted")  # also where the preflight or the guards ended the run before
    planned = evaluations(settings)
    division = divide(settings, planned) if settings.selects else None
    watched = _watched(run, settings, division, play, watch)
    model, tokenizer = prepare(settings, run, watch, watched.get("warmup"))
    note_selection("warmup")
    release_memory()
    if check is not None and settings.steps:
        check(run, model, tokenizer)
    measured = partial(
        run_evaluations,
        run=run,
        planned=planned if division is None else division.reports,
        measure=partial(measure, run, partial(play, model, tokenizer, settings), settings, watch),
        note=note,
    )
    if settings.steps:
        if run.summary["before"] is None:
            note(before=measured("before")[0]["before"])
        release_memory()
        with watch.phase("GRPO", settings.steps) as advance:
            trainer(Grpo(model, tokenizer, settings, run, advance, held_out=watched.get("grpo")))
    save(model, tokenizer, run.checkpoints / FINAL, settings)
    note_selection("grpo")
    results = measured("after")
    gain = gain_sentence(results, settings) if settings.steps else imitation_sentence(results)
    return note(after=results[0]["after"], gain=gain, status="complete")


def _watched(
    run: Run,
    settings: TrainSettings,
    division: Division | None,
    play: Play,
    watch: ProgressListener,
) -> dict[str, HeldOut]:
    """The evaluations while it is trained, by phase."""
    if division is None:
        return {}
    return {
        phase: HeldOut(run, settings, stage, division, play, watch)
        for phase, stage in stages(settings).items()
    }


def follow(run: Run, settings: TrainSettings, trainer: Trainer) -> None:
    """The part of a run of every process but the first: train along, and write nothing.

    They wait for the first one's evaluation by looking into the run folder, however long it takes;
    a barrier would give up after some minutes.

    Raises:
        ConfigurationError: The model cannot be loaded.
        EnvironmentFault: The environment keeps failing.
    """
    if not settings.steps:
        return
    while Run.open(run.path).summary.get("before") is None:
        time.sleep(_PAUSE)
    model, tokenizer = load_prepared(settings, run)
    trainer(Grpo(model, tokenizer, settings, run, lambda *_: None, is_main=False))


def run_evaluations(
    when: str,
    *,
    run: Run,
    planned: Sequence[Evaluation],
    measure: Callable[[str, Evaluation], dict[str, Any]],
    note: Callable[..., Any],
) -> list[dict[str, Any]]:
    """Make the evaluations, and return their entries in the summary.

    Args:
        when: "before" or "after".
        run: One before the training whose figures its summary has is not done again.
        measure: Makes one.
        note: Keeps `evaluations=` in the summary, each time one has its figures.
    """
    recorded = run.summary.get("evaluations") or [{"before": run.summary["before"]}]
    results = [{**each.to_json(), "before": None, "after": None} for each in planned]
    for each, earlier in zip(results, recorded, strict=False):
        each["before"] = earlier["before"]
    for each, evaluation in zip(results, planned, strict=True):
        if when != "before" or each["before"] is None:
            each[when] = measure(when, evaluation)
            note(evaluations=results)
    return results


def measure(
    run: Run,
    play: Callable[[Asked, Done], Sequence[EpisodeRecord]],
    settings: TrainSettings,
    watch: ProgressListener,
    when: str,
    evaluation: Evaluation,
) -> dict[str, Any]:
    """Play the tasks of an evaluation, keep the transcripts in the run, and return the figures."""
    phase = f"{when}{evaluation.suffix}"
    run.cut_rollouts(phase)
    asked = asked_for(settings, evaluation)
    total = min(evaluation.played, evaluation.tasks) * evaluation.tries
    with watch.phase(f"{evaluation.name}, {when}", total) as advance:
        records = play(asked, lambda done: advance(done, ""))
    run.log_rollouts({"phase": phase, "step": None, **r.to_json()} for r in records)
    return evaluation_of(asked, records).summary()


def _blank(settings: TrainSettings) -> dict[str, Any]:
    """A summary before anything is known."""
    return {
        "env_id": settings.env_id,
        "trainer": settings.trainer,
        "model": settings.model,
        "seconds": 0.0,
        "evaluations": [],
        "before": None,
        "after": None,
        "gain": None,
        "control": settings.control,
        "status": "interrupted",
    }
