"""What `warm-up` does: a warm-up, a look at the format it taught, and GRPO whatever that says.

The look is the preflight of `toolgym train`, with strict tools, as the document had them; what it
measures in seconds is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.experiment import Config, Scale
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
from adapters.training.preflight import Scope, preflight
from adapters.training.settings import resolve
from adapters.training.watch import Silent

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
    report = preflight(settings, *pair, Silent(), scope=SCOPE)
    record: dict[str, Any] = {"go": report.go, "reasons": report.reasons}
    for key in _FIGURES:
        value = report.figures.get(key)
        record[key] = None if value is None else told(float(value))
    signal = report.figures.get("signal", {}).get(GROUP_SIZE)
    return record | {"signal": None if signal is None else told(float(signal))}


def name_of(questions: int, epochs: int, rate: float) -> str:
    """Of a cell."""
    return f"q{questions}-e{epochs}-lr{rate:g}"


def cells(scale: Scale) -> dict[str, Config]:
    """The least and the most at smoke size; then all four; then with a lower rate, and enough."""
    asked = [(questions, epochs) for questions in QUESTIONS for epochs in EPOCHS]
    shown = [asked[0], asked[-1]] if scale == "smoke" else asked
    rates = RATES if scale == "full" else RATES[:1]
    wanted = [(*each, rate) for rate in rates for each in shown]
    if scale == "full":
        wanted.append((ENOUGH, EPOCHS[-1], RATES[0]))
    return {name_of(*each): _cell(*each) for each in wanted}


def _cell(questions: int, epochs: int, rate: float) -> dict[str, Any]:
    start = {
        "demonstrations": questions,
        "steps": questions * epochs // BATCH,
        "batch": BATCH,
        "learning_rate": rate,
    }
    return {"start": start, "steps": STEPS, "tasks": TASKS}
