"""Entropy: does it collapse where the warm-up was over-fitted or the rate is high, and what helps?

Document 002 has a threshold: below 0.5 nats for more than 50 steps a model is likely collapsing.
It is of long free text. What is done stands in `entropy_runs`.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.experiment import Experiment
from adapters.lab.experiments.entropy_figures import figures
from adapters.lab.experiments.entropy_runs import FLOOR, PATIENCE, THRESHOLD, cells, run
from adapters.lab.prediction import Prediction, mean_above, mean_unchanged, share_above

_FOR: Final = f"{THRESHOLD:g} nats for more than {PATIENCE} steps"
PREDICTIONS: Final[tuple[Prediction, ...]] = (
    mean_above(
        "healthy_above_threshold",
        f"A model that is fine begins at {THRESHOLD:g} nats or more.",
        "healthy",
        "entropy_first",
        by=THRESHOLD,
    ),
    share_above(
        "threshold_separates",
        f"Trainings at the high rate stay below {_FOR}, and healthy ones do not: 50 points apart.",
        "high",
        "claimed_trips",
        than="healthy",
        by=0.5,
    ),
    mean_above(
        "healthy_learns",
        "The trainings called healthy gain 10 points of accuracy.",
        "healthy",
        "gained",
        by=0.1,
        unit="share",
    ),
    mean_unchanged(
        "claimed_guard_spares",
        f"A guard at {_FOR} lets a healthy training be: it hardly ever rolls back.",
        "healthy-guard-claimed",
        "roll_backs",
        within=0.1,
    ),
    share_above(
        "rate_empties",
        f"At the high rate more trainings end below {FLOOR:g} nats than healthy ones, by half.",
        "high",
        "at_floor",
        than="healthy",
        by=0.5,
    ),
    share_above(
        "overfit_empties",
        f"After an over-fitted warm-up more end below {FLOOR:g} nats than after the usual one.",
        "overfit",
        "at_floor",
        than="usual",
        by=0.2,
    ),
    mean_above(
        "overfit_learns_less",
        "After an over-fitted warm-up a training gains less accuracy, by 5 points.",
        "usual",
        "gained",
        than="overfit",
        by=0.05,
        unit="share",
    ),
    *(
        mean_above(
            f"{cure}_keeps_entropy_{start}",
            f"With {words} a training ({start}) ends with more entropy, by 0.05 nats.",
            f"{start}-{cure}",
            "entropy_end",
            than=start,
            by=0.05,
        )
        for start in ("high", "overfit")
        for cure, words in (("bonus", "an entropy bonus of 0.01"), ("guard", "the guards"))
    ),
    mean_above(
        "clip_higher_keeps_entropy",
        "Clipping at 1.28 and not at 1.2 a training ends with more entropy, by 0.05 nats.",
        "usual-clip-higher",
        "entropy_end",
        than="usual-clip",
        by=0.05,
    ),
    mean_above(
        "guard_saves_accuracy",
        "With the guards a training at the high rate ends with more accuracy, by 5 points.",
        "high-guard",
        "accuracy_end",
        than="high",
        by=0.05,
        unit="share",
    ),
)


EXPERIMENT: Final = Experiment(
    name="entropy",
    document="002",
    title="Entropy, and the threshold of half a nat",
    claim=(
        f"Below {_FOR} a model is likely collapsing into one narrow way to write, and hardly comes"
        " back. An over-fitted warm-up makes it likelier; clipping higher above keeps entropy."
    ),
    setting=(
        "The workflow micro-model, paid the score of the episode, 60 updates of 32 rollouts (K=8)"
        " on the tasks of one kind, at rates of 0.0001 (healthy), 0.0003 (usual) and 0.003 (high),"
        " and at 0.0003 after a warm-up of 32 demonstrations shown over and over. Entropy is per"
        " token, as of tool calls: most tokens of a workflow have to be what they are. Clipping is"
        " compared at four updates per batch, since at one it never acts."
    ),
    prevention=(
        "The guard of entropy compares with the first steps of the same training, not with a"
        " number of nats; what is clipped above is 1.28 by default, and an entropy bonus is a"
        " setting."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 24, "full": 48},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.5,
)
