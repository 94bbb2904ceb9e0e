"""The reinforcement learning of a run, as a job for a trainer, with evaluations on selection tasks.

Every `eval_every` steps, the model is evaluated on selection tasks with greedy decoding. Neither
training nor the evaluations before and after it use these tasks. Training is bit-identical with and
without these evaluations, unless a guard acts on their results. Each step is evaluated once: a
resumed run reads the results of earlier evaluations from `metrics.jsonl`. `checkpoints/best`
contains the best weights so far.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.low_rank import Adapter
from adapters.training.models.weights import read_weights
from adapters.training.runs.preparation import save
from adapters.training.runs.progress import Advance
from adapters.training.settings import TrainSettings
from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord, Evaluation
from toolgym.runs.run import SELECTION, Run

BEST: Final = "best"
SHOWN: Final = 4
"""Number of episodes of a step whose transcripts are kept."""
Figures = dict[str, Any]


@dataclass
class Grpo:
    """The job of a trainer: to train `model` in place up to the last step in the settings.

    Attributes:
        model: The model after the supervised steps.
        tokenizer: Tokenizer of the model.
        settings: Settings of the run.
        run: The run folder for metrics, rollouts and checkpoints. The trainer resumes from its last
            checkpoint in this folder.
        advance: Callback for the progress.
        is_main: Whether this process writes the run folder.
        evaluate: Function that plays the selection tasks; it is called with the number of completed
            steps. None means that this process makes no evaluations.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    settings: TrainSettings
    run: Run
    advance: Advance = lambda done, note: None
    is_main: bool = True
    evaluate: Callable[[int], Evaluation] | None = None

    def cut_off_after(self, step: int) -> None:
        """Remove the metrics and rollouts of steps that will be repeated, and show the progress."""
        if self.is_main:
            self.run.cut_metrics("grpo", step)
            self.run.cut_rollouts("grpo", step)
        self.advance(step, "")

    def on_step(
        self, step: int, metrics: Mapping[str, float], episodes: Sequence[EpisodeRecord]
    ) -> None:
        """Log the metrics of a step and some of its episodes, and show the progress."""
        where = {"phase": "grpo", "step": step}
        self.run.log_metrics({**where, **metrics})
        self.run.log_rollouts({**where, **each.to_json()} for each in episodes[:SHOWN])
        self.advance(step, f"reward {metrics.get('reward', float('nan')):.3f}")

    @property
    def history(self) -> list[Figures]:
        """The results of all evaluations, by step."""
        return sorted(self.run.metrics(SELECTION), key=lambda figures: figures["step"])

    def evaluate_after(
        self, step: int, saved: PreTrainedModel | Adapter | None = None
    ) -> dict[str, float] | None:
        """Evaluate after a step if an evaluation is due.

        Args:
            step: Number of updates made.
            saved: Object to save if the result is the best so far, such as the adapter; None means
                the model.

        Returns:
            The results for the guards, which are empty if the step has no evaluation. None means
            that training should end.
        """
        if self.evaluate is None:
            return {}
        history, settings = self.history, self.settings
        steps = [each["step"] for each in history]
        if is_due(step, settings.eval_every, settings.steps, steps):
            began, was_training = time.perf_counter(), self.model.training
            merged = saved.merged() if isinstance(saved, Adapter) else nullcontext()
            with merged, torch.random.fork_rng():
                found = self.evaluate(step)
            self.model.train(was_training)
            low, high = found.interval
            figures: Figures = {
                "step": step,
                "held_out_accuracy": None if math.isnan(found.accuracy) else found.accuracy,
                "held_out_low": low,
                "held_out_high": high,
                "held_out_answered": found.answered,
                "held_out_validity": found.validity,
                "held_out_episodes": sum(record.scored for record in found.records),
                "evaluation_seconds": time.perf_counter() - began,
            }
            if all(_accuracy(figures) > _accuracy(each) for each in history):
                save(saved or self.model, self.tokenizer, self.run.checkpoints / BEST, settings)
            where = {"phase": SELECTION, "step": step}
            self.run.cut_rollouts(SELECTION, step - 1)
            self.run.log_rollouts({**where, **record.to_json()} for record in found.records)
            self.run.log_metrics({**where, **figures})
            history = self.history
        if self._has_no_new_best(history, step):
            return None
        return {
            key: float(figures[key])
            for figures in history
            for key in ("held_out_accuracy", "held_out_episodes")
            if figures["step"] == step and figures["held_out_accuracy"] is not None
        }

    def is_over(self, step: int) -> bool:
        """Return whether the last `patience` evaluations up to a step had no new best accuracy."""
        return self._has_no_new_best(self.history, step)

    def _has_no_new_best(self, history: Sequence[Figures], step: int) -> bool:
        found = [_accuracy(each) for each in history if each["step"] <= step]
        patience = self.settings.patience
        return bool(patience and found and len(found) - 1 - found.index(max(found)) >= patience)

    @property
    def kept(self) -> Path | None:
        """Return the folder of the final weights of training.

        None means the weights at the end of training.

        Raises:
            ConfigurationError: If the folder is missing.
        """
        folder = self.run.checkpoints / BEST
        if self.settings.checkpoint != BEST or not self.history:
            return None
        if not folder.is_dir():
            raise ConfigurationError(f"{folder} is missing. Restore it, or start a new run.")
        return folder

    def load_kept(self) -> None:
        """Load the final weights of training."""
        if self.kept is not None:
            read_weights(self.model, self.kept)

    def summary(self) -> Figures:
        """Return the evaluation results for `summary.json`; empty if nothing was scored."""
        history = self.history
        best = max(history, key=_accuracy, default=None)
        if best is None or best["held_out_accuracy"] is None:
            return {}
        return {
            "evaluations": len(history),
            "best_step": best["step"],
            "best_accuracy": best["held_out_accuracy"],
            "last_step": history[-1]["step"],
            "checkpoint": self.settings.checkpoint,
        }


def _accuracy(figures: Figures) -> float:
    accuracy = figures["held_out_accuracy"]
    return -1.0 if accuracy is None else float(accuracy)


def is_due(step: int, every: int, last: int, evaluated: Collection[int]) -> bool:
    """Return whether an evaluation is due after a step of training.

    An evaluation is due before the first step, after the last step, and at intervals of `every`
    steps. If a trainer skips such a step, the evaluation is due at the next step.

    Args:
        step: Number of updates made.
        every: Steps between evaluations.
        last: Number of training steps.
        evaluated: Steps that have an evaluation.
    """
    if step in evaluated:
        return False
    before = max((each for each in evaluated if each < step), default=-1)
    return step // every > before // every or step >= last
