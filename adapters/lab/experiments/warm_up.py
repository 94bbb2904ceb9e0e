"""How much imitation comes before reinforcement: what the format check and GRPO make of it.

Document 000 lays the collapse partly to 100 questions in two epochs, and asks for four epochs or
200 questions, and for a look at the format before GRPO. What is done stands in `warm_up_runs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapters.lab.cell_figures import lines, points
from adapters.lab.experiment import Experiment
from adapters.lab.experiments.warm_up_runs import (
    EPOCHS,
    QUESTIONS,
    RATES,
    SCOPE,
    STEPS,
    cells,
    name_of,
    run,
)
from adapters.lab.figures import Figure
from adapters.lab.prediction import (
    Cells,
    Prediction,
    mean_above,
    mean_unchanged,
    share_above,
)

_LEAST, _MOST = (name_of(q, e, RATES[0]) for q, e in zip(QUESTIONS, EPOCHS, strict=True))
_EPOCHS: Final = name_of(QUESTIONS[0], EPOCHS[1], RATES[0])
_QUESTIONS: Final = name_of(QUESTIONS[1], EPOCHS[0], RATES[0])
SHOWN: Final = {
    "100, 2 epochs": _LEAST,
    "100, 4 epochs": _EPOCHS,
    "200, 2 epochs": _QUESTIONS,
    "200, 4 epochs": _MOST,
}


def _gained_though_refused(record: Mapping[str, Any]) -> float | None:
    gained: float | None = record["score_gained"]
    return None if record["go"] else gained


PREDICTIONS: Final[tuple[Prediction, ...]] = (
    mean_above(
        "epochs_help",
        "Four epochs instead of two: 10 points more of the turns hold valid calls.",
        _EPOCHS,
        "validity",
        than=_LEAST,
        by=0.1,
        unit="share",
    ),
    mean_above(
        "questions_help",
        "200 questions instead of 100: 10 points more of the turns hold valid calls.",
        _QUESTIONS,
        "validity",
        than=_LEAST,
        by=0.1,
        unit="share",
    ),
    mean_unchanged(
        "either_will_do",
        "Twice the epochs or twice the questions, which are as many steps: the same within 10"
        " points.",
        _EPOCHS,
        "validity",
        than=_QUESTIONS,
        within=0.1,
        unit="share",
    ),
    share_above(
        "check_tells_them_apart",
        "The check lets the longest warm-up go and not the shortest: in half more of the seeds.",
        _MOST,
        "go",
        than=_LEAST,
        by=0.5,
    ),
    mean_above(
        "more_imitation_learns_more",
        f"GRPO gains 0.05 more in {STEPS} steps after the longest warm-up than after the shortest.",
        _MOST,
        "score_gained",
        than=_LEAST,
        by=0.05,
    ),
    mean_unchanged(
        "what_is_refused_learns_nothing",
        "Where the check says no, GRPO gains less than 0.02.",
        _LEAST,
        _gained_though_refused,
        within=0.02,
    ),
)


def figures(cells: Cells) -> Sequence[Figure]:
    """The check, and GRPO after it."""
    check = points(
        "warm_up_check",
        "What the check finds",
        "Questions and epochs of the warm-up; mean over seeds.",
        cells,
        SHOWN,
        {"valid turns": "validity", "answered": "answered", "go": "go"},
    )
    rewards = lines(
        "warm_up_reward",
        "Reward after warm-ups of different length",
        "Mean over seeds, whatever the check had said.",
        cells,
        SHOWN,
        "reward",
        unit="number",
    )
    return [check, rewards]


EXPERIMENT: Final = Experiment(
    name="warm-up",
    document="000",
    title="How much to imitate first",
    claim=(
        "100 questions in two epochs taught the format of calls and not their arguments; four"
        " epochs or 200 questions, and a check of the format before GRPO, would have helped."
    ),
    setting=(
        "A tiny model from scratch imitates demonstrations on sqlgym/Explore-v0, two at a step. A"
        f" preflight plays {SCOPE.tasks} questions {SCOPE.tries} times with strict tools, and GRPO"
        f" goes {STEPS} steps (K=8, four questions a step) whatever it says. The document's model"
        " was pretrained; this one learns language, too, so that its sizes are not the document's."
    ),
    prevention=(
        "`toolgym train` asks `toolgym preflight` after the warm-up and before any step: it"
        " plays, counts valid calls, and says no-go with the reason."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 6, "full": 12},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 9.0 + 0.02 * config["start"]["steps"],
)
