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

from adapters.training.settings import TrainSettings
from adapters.training.sloppy import HABITS, has_novice
from toolgym.records import Z95


def gain_sentence(evaluations: Sequence[Mapping[str, Any]], settings: TrainSettings) -> str:
    """A few sentences on what changed and what kind of change it is.

    Args:
        evaluations: As a summary has them: `name`, `held_out`, and the figures `before` and `after`
            with `accuracy` and `episodes` at least. The verdict goes by the first.
        settings: Of the run.
    """
    first, *others = evaluations
    if not _is_scored(first):
        return "No episode could be scored, so nothing can be said of a gain."
    told = [f"Accuracy on {first['name']} {_moved(first)}{_first_verdict(first, settings)}"]
    for other in others:
        if _is_scored(other):
            chance = within_chance(other["before"], other["after"])
            end = ", a difference that chance explains." if chance else "."
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
        f" (greedy, {after['episodes']} tasks)"
    )


def _first_verdict(evaluation: Mapping[str, Any], settings: TrainSettings) -> str:
    """How the sentence on the first evaluation ends."""
    before, after = evaluation["before"], evaluation["after"]
    changed = not within_chance(before, after)
    if settings.control is not None:
        rose = after["accuracy"] > before["accuracy"]
        told = _control(changed, rose)
        return f". Rewards were shuffled, so nothing could be learnt; {told}"
    if not changed:
        return ", a difference that chance explains."
    if after["accuracy"] < before["accuracy"]:
        return ": training did harm. Look at validity and entropy in the report."
    return f". {_kind(settings)}"


def within_chance(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the two accuracies differ by less than two-sided 5 % chance allows.

    Taken as two independent samples, which is on the careful side, since both played the same
    tasks.
    """
    error = sum(f["accuracy"] * (1 - f["accuracy"]) / f["episodes"] for f in (before, after))
    difference = abs(after["accuracy"] - before["accuracy"])
    return bool(difference <= Z95 * math.sqrt(error))


def _control(changed: bool, rose: bool) -> str:
    if not changed:
        return "the difference is one that chance explains."
    if rose:
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
        " what a model sometimes did before. Compare pass@k of checkpoints/warmup (`toolgym eval"
        " --k 8`) to see whether it could already."
    )
