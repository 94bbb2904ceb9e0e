"""A training run from beginning to end: imitate, measure, reinforce, measure again.

    warm-up   demonstrations, played through the environment, are imitated -> checkpoints/warmup
    before    greedy on held-out tasks
    grpo      whichever trainer was chosen                                  -> checkpoints/checkpoint-N
    after     greedy on the same held-out tasks                             -> checkpoints/final

Each phase leaves its result in the run folder before the next begins, and a run that is taken up again
skips what is there; the trainer goes on from its own last checkpoint. So a run that was killed at any
moment ends with the files that it would have had.

A trainer is a function from `Grpo` to nothing: it trains `model` in place. This module knows none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.settings import TrainSettings
from toolgym.runs import Run

WARMUP, FINAL = "warmup", "final"
_EVALUATION_SEED = 0  # every run is measured on the same held-out tasks
_BATCH = 192

Advance = Callable[[int, str], None]
"""Called with how much of a phase is done, and a word on how it stands."""


class Watch(Protocol):
    """Whoever looks on."""

    def phase(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """A phase of `total` units begins."""
        ...


@dataclass(frozen=True)
class Grpo:
    """What a trainer is given.

    Attributes:
        model: To be trained in place.
        tokenizer: Its tokenizer.
        settings: All settings of the run.
        run: Where metrics, rollouts and checkpoints go.
        resume_from: The checkpoint to go on from; None begins.
        advance: To be called after each step.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    settings: TrainSettings
    run: Run
    resume_from: Path | None
    advance: Advance


Trainer = Callable[[Grpo], None]
