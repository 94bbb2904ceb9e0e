"""What a run may say of itself.

An accuracy that rose is a fact; what rose in it is another. Reinforcement learning with a handful
of thousand rollouts makes likelier what the model sometimes did already. The tiny model's
demonstrations hold the right way among others: three episodes in ten are played as they should be,
or the environment's own novice plays them and now and then hits upon it. So the gain is a choice
among habits that were shown, and the run says so. And a change that chance explains is called that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from adapters.training.models.noisy_demonstrator import HABITS, has_novice
from adapters.training.runs.settings import TrainSettings
from toolgym.records import Z95

SURER = (
    "Greedily a model does the likeliest of its habits, and where two are about as likely, a small"
    " push decides between them, even one by noise: what is sampled tells what was learnt."
)
"""Said where the greedy accuracy moved and the sampled one did not."""


def gain_sentence(evaluations: Sequence[Mapping[str, Any]], settings: TrainSettings) -> str:
    """A few sentences on what changed and what kind of change it is.

    Args:
        evaluations: As a summary has them: `name`, `held_out`, `temperature`, and the figures
            `before` and `after` with `accuracy` and `episodes` at least. The verdict goes by the
            first, and by what was sampled where there is such a one.
        settings: Of the run.
    """
    first, *others = evaluations
    if not _is_scored(first):
        return "No episode could be scored, so nothing can be said of a gain."
    sampled = next((each for each in others if each["temperature"] and _is_scored(each)), None)
    others = [each for each in others if not each["temperature"] and _is_scored(each)]
    told = [f"Accuracy on {first['name']} {_moved(first)}{_verdict(first, sampled, settings)}"]
    for other in others:
        end = ", a difference that chance explains." if _is_chance(other) else "."
        told.append(f"On {other['name']} it {_moved(other)}{end}")
    if not first["held_out"]:
        told.append("Nothing was held out, so this says nothing of tasks that are not trained on.")
    return " ".join(told)


def _is_scored(evaluation: Mapping[str, Any]) -> bool:
    ends = (evaluation["before"], evaluation["after"])
    return all(figures is not None and figures.get("accuracy") is not None for figures in ends)


def _moved(evaluation: Mapping[str, Any]) -> str:
    before, after = evaluation["before"], evaluation["after"]
    return (
        f"went from {before['accuracy']:.1%} to {after['accuracy']:.1%}"
        f" ({_how(evaluation['temperature'])}, {after['episodes']} episodes)"
    )


def _how(temperature: float) -> str:
    return f"sampled at temperature {temperature:g}" if temperature else "greedy"


def _verdict(
    greedy: Mapping[str, Any], sampled: Mapping[str, Any] | None, settings: TrainSettings
) -> str:
    """How the sentence on the first evaluation ends, and what of it was sampled."""
    told = "" if sampled is None else f", and {_moved(sampled)}"
    surer = sampled is not None and _is_chance(sampled) and not _is_chance(greedy)
    decisive = sampled or greedy
    if settings.control is not None:
        told += f". Rewards were shuffled, so nothing could be learnt; {_control(decisive)}"
    elif _is_chance(decisive):
        told += ", a difference that chance explains."
    elif _rose(decisive):
        told += f". {_kind(settings)}"
    else:
        told += ": training did harm. Look at validity and entropy in the report."
    return f"{told} {SURER}" if surer else told


def _rose(evaluation: Mapping[str, Any]) -> bool:
    return bool(evaluation["after"]["accuracy"] > evaluation["before"]["accuracy"])


def _is_chance(evaluation: Mapping[str, Any]) -> bool:
    return within_chance(evaluation["before"], evaluation["after"])


def within_chance(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the two accuracies differ by less than two-sided 5 % chance allows.

    Taken as two independent samples, which is on the careful side, since both played the same
    tasks.
    """
    error = sum(f["accuracy"] * (1 - f["accuracy"]) / f["episodes"] for f in (before, after))
    difference = abs(after["accuracy"] - before["accuracy"])
    return bool(difference <= Z95 * math.sqrt(error))


def _control(evaluation: Mapping[str, Any]) -> str:
    if _is_chance(evaluation):
        where = " in what is sampled" if evaluation["temperature"] else ""
        return f"the difference{where} is one that chance explains."
    if _rose(evaluation):
        return "that it rose all the same means that something other than the rewards moved it."
    return "noise in place of rewards did harm, as it may."


def _kind(settings: TrainSettings) -> str:
    if settings.demonstrator == "sloppy" and settings.warmup_steps:
        shown = (
            "The demonstrations were a novice's, who tries what is good and what is not, and"
            " reinforcement learning made the good the likelier."
            if has_novice(settings.env_id)
            else f"The demonstrations were played the right way in {HABITS['careful']:.0%} of the"
            " episodes, and reinforcement learning made that habit the likelier one."
        )
        return f"What kind of gain this is: elicitation, not a new skill. {shown}"
    return (
        "What kind of gain this is, accuracy does not tell: reinforcement learning makes likelier"
        " what a model sometimes did before. Compare pass@k before and after (`--eval-tries 8`, or"
        " `toolgym eval --k 8` of checkpoints/warmup) to see whether it could already."
    )
