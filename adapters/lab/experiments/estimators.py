"""The estimators and losses of the field on workflows: which ends higher, and which fails less.

Document 003 puts four of them above GRPO. What is done stands in `estimators_runs`.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.experiment import Experiment
from adapters.lab.experiments.estimators_figures import LABELS, figures
from adapters.lab.experiments.estimators_runs import COLLAPSED, PASSES, cells, run
from adapters.lab.prediction import Prediction, mean_above, mean_unchanged, share_above

_SAID_BETTER: Final = ("reinforce++", "dr-grpo", "gspo", "dapo")
_OTHERS: Final = ("rloo", "cispo")


def _key(name: str) -> str:
    return name.replace("-", "_").replace("+", "p")


def _fails_less(name: str) -> Prediction:
    return share_above(
        f"{_key(name)}_fails_less",
        f"In pairs at a high rate {LABELS[name]} collapses less than GRPO, by 20 points.",
        "stress-grpo",
        "collapsed",
        than=f"stress-{name}",
        by=0.2,
    )


def _higher(name: str) -> Prediction:
    return mean_above(
        f"{_key(name)}_higher",
        f"In usual groups {LABELS[name]} ends with a higher score than GRPO, by 0.05.",
        f"usual-{name}",
        "score_end",
        than="usual-grpo",
        by=0.05,
    )


def _alike(name: str) -> Prediction:
    return mean_unchanged(
        f"{_key(name)}_alike",
        f"In usual groups {LABELS[name]}, of which nothing is claimed, ends as GRPO does.",
        f"usual-{name}",
        "score_end",
        than="usual-grpo",
        within=0.05,
    )


PREDICTIONS: Final[tuple[Prediction, ...]] = (
    *map(_fails_less, _SAID_BETTER),
    *map(_higher, _SAID_BETTER),
    *map(_alike, _OTHERS),
    mean_above(
        "global_is_best",
        "Normalising over the whole batch, called the best in theory, ends above normalising by"
        " group alone under stress, by 0.05.",
        "stress-reinforce++",
        "score_end",
        than="stress-grpo",
        by=0.05,
    ),
)


EXPERIMENT: Final = Experiment(
    name="estimators",
    document="003",
    title="The estimators of the field, on workflows",
    claim=(
        "REINFORCE++ (normalising over everything), Dr. GRPO (no deviation), GSPO and DAPO are"
        " better than GRPO, whose deviation by group is the defect."
    ),
    setting=(
        "The workflow micro-model, paid the score of the episode, on the tasks of one kind, 60"
        f" steps of 32 rollouts (DAPO draws up to three times as many), {PASSES} updates each."
        " Usual: groups of 8 at a rate of 0.0001; under stress: pairs at 0.01. A training has"
        f" failed when less than {COLLAPSED:.0%} of what it writes at the end is valid. Every"
        " method has one rate, which was chosen for GRPO and not for the others."
    ),
    prevention=(
        "Each of them can be chosen in both trainers, so that the question can be asked of one's"
        " own task."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 24, "full": 48},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.6,
)
