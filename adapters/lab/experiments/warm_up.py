"""Amount of imitation before reinforcement: its effect on the format check and on GRPO.

Document 000 lays the collapse partly to 100 questions in two epochs, and asks for four epochs or
200 questions, and for a look at the format before GRPO.

What is done is a warm-up, a look at the format that it taught, and GRPO whatever that says. The
look is the preflight of `toolgym train`, with strict tools, as the document had them; what it
measures in seconds is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapters.lab import cell_figures
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.prediction import (
    Cells,
    Prediction,
    mean_above,
    mean_unchanged,
    share_above,
)
from adapters.lab.sql.tiny_grpo import (
    GROUP_SIZE,
    PROMPTS,
    ROOM,
    TinyGrpo,
    lines,
    mean,
    sampled_score,
    told,
    train,
)
from adapters.lab.sql.tiny_start import ENVIRONMENT, Pair, TinyStart, started
from adapters.training.preflight.run import Scope, preflight
from adapters.training.runs.progress import NoProgress
from adapters.training.runs.settings import resolve

QUESTIONS: Final = (100, 200)
EPOCHS: Final = (2, 4)
RATES: Final = (8e-3, 2e-3)
ENOUGH: Final = 1200
"""Questions of the warm-up that the other experiments begin with."""
BATCH: Final = 2
"""Transcripts of a step, as the document had it."""
STEPS: Final = 20
TASKS: Final = 64
TRIES: Final = 2
"""Of each of the training tasks on which the score is taken before and after GRPO."""
ENDS: Final = 5
SCOPE: Final = Scope(tasks=8, tries=GROUP_SIZE, transcripts=4)
_STRICT: Final = {"parsing": "strict"}
_FIGURES: Final = ("validity", "tool_failures", "answered", "accuracy", "null_arguments", "entropy")


def name_of(questions: int, epochs: int, rate: float) -> str:
    """The name of a cell."""
    return f"q{questions}-e{epochs}-lr{rate:g}"


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


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Warm up, look, train."""
    pair = started(TinyStart(**config["start"]), seed)
    record = _looked_at(pair, seed)
    scores = [sampled_score(pair, _STRICT, config["tasks"], TRIES, seed)]
    history = train(pair, TinyGrpo(config["steps"], _STRICT), seed)
    scores.append(sampled_score(pair, _STRICT, config["tasks"], TRIES, seed))
    record |= {"score_before": told(scores[0]), "score_after": told(scores[1])}
    record["score_gained"] = told(scores[1] - scores[0])
    record["validity_after"] = told(mean(history, "validity", last=ENDS))
    return record | lines(history, "reward")


def _looked_at(pair: Pair, seed: int) -> dict[str, Any]:
    """What a preflight finds, without what depends on the machine."""
    settings = resolve(
        ENVIRONMENT,
        env_kwargs={"dataset": "tiny", **_STRICT},
        group_size=GROUP_SIZE,
        prompts=PROMPTS,
        max_completion_length=ROOM,
        trainer="reference",
        seed=seed,
    )
    report = preflight(settings, *pair, NoProgress(), scope=SCOPE)
    record: dict[str, Any] = {"go": report.go, "reasons": report.reasons}
    for key in _FIGURES:
        value = report.figures.get(key)
        record[key] = None if value is None else told(float(value))
    signal = report.figures.get("signal", {}).get(GROUP_SIZE)
    return record | {"signal": None if signal is None else told(float(signal))}


def cells(scale: Scale) -> dict[str, Config]:
    """The least and the most at smoke size; then all four; then with a lower rate, and enough."""
    asked = [(questions, epochs) for questions in QUESTIONS for epochs in EPOCHS]
    sizes = [asked[0], asked[-1]] if scale == "smoke" else asked
    rates = RATES if scale == "full" else RATES[:1]
    starts = [(*each, rate) for rate in rates for each in sizes]
    if scale == "full":
        starts.append((ENOUGH, EPOCHS[-1], RATES[0]))
    return {name_of(*each): _cell(*each) for each in starts}


def _cell(questions: int, epochs: int, rate: float) -> dict[str, Any]:
    start = {
        "demonstrations": questions,
        "steps": questions * epochs // BATCH,
        "batch": BATCH,
        "learning_rate": rate,
    }
    return {"start": start, "steps": STEPS, "tasks": TASKS}


def figures(cells: Cells) -> Sequence[Figure]:
    """The check, and GRPO after it."""
    check = cell_figures.points(
        "warm_up_check",
        "What the check finds",
        "Questions and epochs of the warm-up; mean over seeds.",
        cells,
        SHOWN,
        {"valid turns": "validity", "answered": "answered", "go": "go"},
    )
    rewards = cell_figures.lines(
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
