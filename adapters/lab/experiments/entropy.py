"""Entropy: does it collapse where the warm-up was over-fitted or the rate is high, and what helps?

Document 002 has a threshold: below 0.5 nats for more than 50 steps a model is likely collapsing.
It is of long free text.

Trainings lose their entropy here, with and without what is said to keep it. The rate is usual,
high, or low enough to be called healthy; the warm-up is usual or has seen few demonstrations again
and again. Entropy is the mean over the tokens of a step, in nats; where a step teaches nothing, it
is that of the step before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.cell_figures import lines, points
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.micro.guarded import Watch, only
from adapters.lab.micro.loop import History, MicroConfig, Trainer, mean, start_of
from adapters.lab.micro.measure import accuracy, entropy, examined
from adapters.lab.micro.tokens import CODE
from adapters.lab.prediction import Cells, Prediction, mean_above, mean_unchanged, share_above
from adapters.training.guards.config import GuardConfig

THRESHOLD: Final = 0.5
PATIENCE: Final = 50
"""The threshold that is claimed, in nats, and for how many steps."""
FLOOR: Final = 0.03
"""Nats below which hardly anything is left to choose: a tenth of what the usual start has."""
LAST: Final = 10
STARTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "healthy": {"learning_rate": 1e-4},
    "usual": {"learning_rate": 3e-4},
    "high": {"learning_rate": 3e-3},
    "overfit": {"learning_rate": 3e-4, "start_shown": 32, "start_steps": 300},
}
"""`overfit`: 32 demonstrations, each shown some 600 times."""
CURES: Final[Mapping[str, Mapping[str, Any]]] = {
    "bonus": {"loss_changes": {"entropy_bonus": 0.01}},
    "bonus10": {"loss_changes": {"entropy_bonus": 0.1}},
    "guard": {"guard": "relative"},
    "guard-claimed": {"guard": "claimed"},
    "clip": {"passes": 4},
    "clip-higher": {"passes": 4, "loss_changes": {"epsilon_high": 0.28}},
    "clip-higher-much": {"passes": 4, "loss_changes": {"epsilon_high": 0.5}},
}
"""Clipping acts only where a batch is learnt from more than once, so `clip` is what `clip-higher`
is compared with."""
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


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train, under a guard or not, and follow the entropy."""
    settings = MicroConfig.of(config)
    trainer = Trainer(settings, start_of(settings, seed), seed)
    watch = Watch(trainer, _guards(config["guard"])) if config.get("guard") else None
    first = examined(trainer, seed)
    history: History = []
    while len(history) < settings.updates and not (watch and watch.stopped):
        history.append(watch.step() if watch else trainer.step())
    last = examined(trainer, seed)
    row = _entropies(history, entropy(trainer.model, first) if not history else None)
    longest = _longest_below(row, THRESHOLD)
    return {
        "entropy_first": row[0],
        "entropy_end": entropy(trainer.model, last),
        "at_floor": entropy(trainer.model, last) < FLOOR,
        "below_claimed": longest,
        "claimed_trips": longest > PATIENCE,
        "accuracy_first": accuracy(first),
        "accuracy_end": accuracy(last),
        "gained": accuracy(last) - accuracy(first),
        "valid_end": sum(each.valid for each in last.endings) / len(last.endings),
        "distinct_end": mean(history, "distinct", LAST),
        "clip_high": sum(step.get("clip_high", 0.0) for step in history) / len(history),
        "steps": len(history),
        "was_stopped": bool(watch and watch.stopped),
        "roll_backs": watch.numbers["roll_backs"] if watch else 0.0,
        "entropy": row,
    }


def _guards(name: str) -> GuardConfig:
    """All guards as they are; or one alone, with the threshold that is claimed."""
    if name == "relative":
        return GuardConfig()
    return only("entropy_floor", entropy_floor_nats=THRESHOLD, patience=PATIENCE)


def _entropies(history: History, known: float | None) -> list[float | None]:
    """Of each step, the last known where it was not measured."""
    row = []
    for step in history:
        known = step.get("entropy", known)
        row.append(known)
    return row


def _longest_below(row: list[float | None], limit: float) -> int:
    """The most steps in a row with entropy below a limit."""
    longest = now = 0
    for value in row:
        now = now + 1 if value is not None and value < limit else 0
        longest = max(longest, now)
    return longest


def cells(scale: Scale) -> dict[str, Config]:
    """The cells that the claims need; at `full` every cure for every start."""
    if scale == "full":
        pairs = [(start, cure) for start in STARTS for cure in ("", *CURES)]
    else:
        pairs = [("healthy", ""), ("healthy", "guard-claimed"), ("usual", "")]
        pairs += [("high", cure) for cure in ("", "bonus", "guard")]
        pairs += [("usual", cure) for cure in ("clip", "clip-higher")]
        pairs += [("overfit", cure) for cure in ("", "bonus", "guard")]
    return {
        f"{start}-{cure}" if cure else start: {
            "tasks": list(CODE),
            **STARTS[start],
            **CURES.get(cure, {}),
        }
        for start, cure in pairs
    }


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [_while_training(cells), *(_cures(cells, start) for start in STARTS)]


def _while_training(cells: Cells) -> Figure:
    return lines(
        "entropy_training",
        "Entropy while training",
        "Nats per token, mean over seeds. The claimed threshold is 0.5.",
        cells,
        {start: start for start in STARTS},
        "entropy",
        unit="number",
    )


def _cures(cells: Cells, start: str) -> Figure:
    places = {"none": start} | {cure: f"{start}-{cure}" for cure in CURES}
    return points(
        f"entropy_{start}",
        f"With each cure, {start}",
        "At the end of training: entropy in nats per token, accuracy as a share.",
        cells,
        places,
        {"entropy": "entropy_end", "accuracy": "accuracy_end"},
        unit="number",
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
