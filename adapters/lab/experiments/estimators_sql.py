"""Estimators and losses of the field on SQL, from the same start and with the same rollouts.

Document 003 lists what it takes for better algorithms than GRPO: normalisation over the batch, none
by the deviation, ratios of sequences, decoupled clipping. What is done stands in
`estimators_sql_runs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapters.lab.cell_figures import lines, points
from adapters.lab.experiment import Experiment
from adapters.lab.experiments.estimators_sql_runs import ARMS, EVALUATED, STEPS, cells, run
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells, Prediction, mean_above, mean_unchanged

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


def figures(cells: Cells) -> Sequence[Figure]:
    """Reward step by step, and what unseen questions say at the end."""
    by_title = {arm.title: name for name, arm in ARMS.items()}
    rewards = lines(
        "estimators_sql_reward",
        "Reward of seven algorithms",
        "Mean over seeds, at equal rollouts per batch; two updates from each batch.",
        cells,
        by_title,
        "reward",
        unit="number",
        label="batch",
    )
    ends = points(
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
