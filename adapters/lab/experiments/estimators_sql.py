"""Estimators and losses of the field on SQL, from the same start and with the same rollouts.

Document 003 lists what it takes for better algorithms than GRPO: normalisation over the batch, none
by the deviation, ratios of sequences, decoupled clipping.

What is done is one warm-up, and one algorithm after it: an estimator of advantages and a loss as
their papers have them, with the clipping that belongs to them; what papers choose beside (rates,
references, lengths) is the same for all. Two updates from each batch, or no ratio would ever leave
1 and no clipping differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adapters.lab import cell_figures
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells, Prediction, mean_above, mean_unchanged
from adapters.lab.sql.tiny_grpo import (
    GROUP_SIZE,
    PROMPTS,
    ROOM,
    TinyGrpo,
    lines,
    mean,
    measured,
    sampled_score,
    told,
    train,
)
from adapters.lab.sql.tiny_start import TinyStart, started

STEPS: Final = 60
EVALUATED: Final = 64
TRIES: Final = 2
"""Of each training task on which the score is taken before and after."""
ENDS: Final = 5
"""Batches at the beginning and at the end that are compared."""
_SUM: Final = {"name": "dr_grpo", "constant_length": ROOM}


@dataclass(frozen=True)
class Arm:
    """An algorithm: its name in the world, and settings of the reference trainer."""

    title: str
    trainer: Mapping[str, Any]


ARMS: Final[Mapping[str, Arm]] = {
    "grpo": Arm("GRPO", {"advantages": "group_normalized", "loss": "grpo"}),
    "dr_grpo": Arm("Dr. GRPO", {"advantages": "group_centered", "loss": _SUM}),
    "reinforce++": Arm(
        "REINFORCE++",
        {"advantages": "batch_normalized", "loss": {"name": "dapo", "epsilon_high": 0.2}},
    ),
    "rloo": Arm("RLOO", {"advantages": "leave_one_out", "loss": _SUM}),
    "gspo": Arm("GSPO", {"advantages": "group_normalized", "loss": "gspo"}),
    "dapo": Arm("DAPO", {"advantages": "group_normalized", "loss": "dapo", "sampling": {}}),
    "cispo": Arm("CISPO", {"advantages": "group_normalized", "loss": "cispo"}),
}
CLAIMED: Final = ("dr_grpo", "reinforce++", "gspo", "dapo")
"""Those that the document calls better than GRPO."""
OTHERS: Final = ("rloo", "cispo")


def _is_better(arm: str) -> Prediction:
    claim = f"{ARMS[arm].title} ends 0.02 above GRPO on unseen questions."
    key = "held_out_score"
    return mean_above(f"{arm}_is_better", claim, arm, key, than="grpo", by=0.02)


def _is_alike(arm: str) -> Prediction:
    claim = f"{ARMS[arm].title}, of which the document says nothing, ends within 0.05 of GRPO."
    key = "held_out_score"
    return mean_unchanged(f"{arm}_is_alike", claim, arm, key, than="grpo", within=0.05)


def _keeps_form(arm: str) -> Prediction:
    title = ARMS[arm].title
    claim = f"With groups of eight {title} keeps the form of its calls: 90 % are valid at the end."
    return mean_above(f"{arm}_keeps_form", claim, arm, "validity_end", by=0.9, unit="share")


PREDICTIONS: Final[tuple[Prediction, ...]] = (
    mean_above("grpo_learns", "GRPO earns 0.05 more at its end.", "grpo", "score_gained", by=0.05),
    *map(_is_better, CLAIMED),
    *map(_is_alike, OTHERS),
    *map(_keeps_form, ARMS),
)


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train with one algorithm, and measure."""
    pair = started(TinyStart(**config["start"]), seed)
    trainer = {**config["trainer"], "updates_per_batch": 2}
    scores = [sampled_score(pair, {}, config["evaluated"], TRIES, seed)]
    history = train(pair, TinyGrpo(config["steps"], trainer=trainer), seed)
    scores.append(sampled_score(pair, {}, config["evaluated"], TRIES, seed))
    batches = [step for step in history if "reward" in step]
    first, last = (mean(history, "validity", **side) for side in ({"first": ENDS}, {"last": ENDS}))
    record: dict[str, Any] = {
        "validity_first": told(first),
        "validity_end": told(last),
        "failed": last < first / 2,
        "entropy_end": told(mean(history, "entropy", last=ENDS)),
        "rollouts": GROUP_SIZE * sum(each.get("drawn_groups", PROMPTS) for each in batches),
    }
    record |= {"score_before": told(scores[0]), "score_after": told(scores[1])}
    record["score_gained"] = told(scores[1] - scores[0])
    record |= {f"held_out_{k}": v for k, v in measured(pair, config["evaluated"], seed).items()}
    return record | lines(batches, "reward")


def cells(scale: Scale) -> dict[str, Config]:
    """Every algorithm; at smoke size for two updates, under names of their own."""
    start: dict[str, Any] = {}
    configs: dict[str, Config] = {
        f"short-{name}": {
            "start": start,
            "trainer": dict(arm.trainer),
            "steps": 2,
            "evaluated": 8,
        }
        for name, arm in ARMS.items()
    }
    if scale == "smoke":
        return configs
    return configs | {
        name: {"start": start, "trainer": dict(arm.trainer), "steps": STEPS, "evaluated": EVALUATED}
        for name, arm in ARMS.items()
    }


def figures(cells: Cells) -> Sequence[Figure]:
    """Reward step by step, and what unseen questions say at the end."""
    by_title = {arm.title: name for name, arm in ARMS.items()}
    rewards = cell_figures.lines(
        "estimators_sql_reward",
        "Reward of seven algorithms",
        "Mean over seeds, at equal rollouts per batch; two updates from each batch.",
        cells,
        by_title,
        "reward",
        unit="number",
        label="batch",
    )
    ends = cell_figures.points(
        "estimators_sql_end",
        "At the end",
        "Held-out questions, greedy; and calls in the last steps.",
        cells,
        by_title,
        {"right answers": "held_out_accuracy", "valid calls": "validity_end"},
    )
    return [rewards, ends]


EXPERIMENT: Final = Experiment(
    name="estimators-sql",
    document="003",
    title="Seven algorithms on SQL",
    claim=(
        "REINFORCE++, Dr. GRPO, GSPO and DAPO are better than GRPO: they normalise over the batch,"
        " or not by the deviation, or compare sequences, or clip each side by itself."
    ),
    setting=(
        "One tiny model for each seed, warmed up on sqlgym/Explore-v0, goes through"
        f" {STEPS} updates of each algorithm (K=8, four questions a batch, two updates from a"
        " batch, the same learning rate, no reference), and answers"
        f" {EVALUATED} unseen questions greedily. At smoke size it is two updates."
    ),
    prevention=(
        "Each of them can be chosen in both trainers, so that the question can be asked of one's"
        " own task."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 2, "full": 8},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 4.0 + 0.3 * config["steps"],
)
