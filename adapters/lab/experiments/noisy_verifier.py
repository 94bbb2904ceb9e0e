"""A verifier that is wrong now and then: what it does to learning, and whether an audit finds it.

Document 002 says that its false signals make dead groups worse, and asks for an audit. What is done
stands in `noisy_verifier_runs`.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.experiment import Experiment
from adapters.lab.experiments.noisy_verifier_figures import figures
from adapters.lab.experiments.noisy_verifier_runs import AGREED, AUDITED, RATE, cells, run
from adapters.lab.prediction import Prediction, mean_above, share_above, share_unchanged

_KINDS: Final = {"fp20": "20 % false positives", "fn20": "20 % false negatives"}
PREDICTIONS: Final[tuple[Prediction, ...]] = (
    *(
        mean_above(
            f"{cell}_costs_accuracy",
            f"With {words} a training ends less accurate, by 10 points.",
            "clean",
            "accuracy_end",
            than=cell,
            by=0.1,
            unit="share",
        )
        for cell, words in _KINDS.items()
    ),
    *(
        mean_above(
            f"{cell}_worsens_dead_groups",
            f"With {words} more groups are dead in the first ten steps, by 5 points.",
            cell,
            "dead_first",
            than="clean",
            by=0.05,
            unit="share",
        )
        for cell, words in _KINDS.items()
    ),
    mean_above(
        "lasting_errors_cost_more",
        "False positives that stay, of one workflow on one task, cost 5 points more than such as"
        " come and go: they can be learnt.",
        "fp20",
        "accuracy_end",
        than="fp20-fixed",
        by=0.05,
        unit="share",
    ),
    mean_above(
        "reward_lies",
        "With false positives that stay, 10 points more are called right at the end than are.",
        "fp20-fixed",
        "fooled",
        by=0.1,
        unit="share",
    ),
    *(
        share_above(
            f"audit_finds_{cell}",
            f"An audit of {AUDITED} rollouts finds {words}: alarms in 70 points more of"
            " the trainings than without noise.",
            cell,
            "audit_alarm",
            than="clean",
            by=0.7,
        )
        for cell, words in {"fp5": "5 % false positives", **_KINDS}.items()
    ),
    share_unchanged(
        "audit_knows_lasting",
        "It finds errors that stay as well as such as come and go.",
        "fp20-fixed",
        "audit_alarm",
        than="fp20",
        within=0.2,
    ),
)


EXPERIMENT: Final = Experiment(
    name="noisy-verifier",
    document="002",
    title="A verifier that is wrong now and then",
    claim=(
        "A noisy verifier injects false signals, which make advantage collapse worse; audit the"
        " reward before trusting it."
    ),
    setting=(
        "The workflow micro-model, paid 1 or 0 by the episode's verdict, which is turned round now"
        f" and then; 60 updates of 32 rollouts (K=8), rate {RATE:g}, tasks of one kind. Accuracy is"
        f" by the true verdict. The audit judges {AUDITED} of the rollouts again by the second rule"
        " of the environment, and raises an alarm when the whole interval of the agreement lies"
        f" below {AGREED:g}."
    ),
    prevention=(
        "`toolgym audit` judges the rollouts of a run again by a second rule, with an interval;"
        " golds with several right results are refused when tasks are loaded."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 24, "full": 48},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.1,
)
