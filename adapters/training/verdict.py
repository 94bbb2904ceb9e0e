"""What a run may say of itself.

An accuracy that rose is a fact; what rose in it is another. Reinforcement learning with a handful
of thousand rollouts makes likelier what the model sometimes did already. The tiny model's
demonstrations hold the right way among others: three episodes in ten are played as they should be,
or the environment's own novice plays them and now and then hits upon it. So the gain is a choice
among habits that were shown, and the run says so. And a change that chance explains is called that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from adapters.training.settings import TrainSettings
from adapters.training.sloppy import HABITS, has_novice
from toolgym.records import Z95


def gain_sentence(
    before: Mapping[str, Any], after: Mapping[str, Any], settings: TrainSettings
) -> str:
    """One or two sentences on what changed and what kind of change it is.

    Args:
        before: Figures of the evaluation before: `accuracy` and `episodes` at least.
        after: Those of the evaluation after.
        settings: Of the run.
    """
    if before.get("accuracy") is None or after.get("accuracy") is None:
        return "No episode could be scored, so nothing can be said of a gain."
    moved = (
        f"Held-out accuracy went from {before['accuracy']:.1%} to {after['accuracy']:.1%}"
        f" (greedy, {after['episodes']} tasks)"
    )
    changed = not within_chance(before, after)
    if settings.control is not None:
        rose = after["accuracy"] > before["accuracy"]
        told = _control(changed, rose)
        return f"{moved}. Rewards were shuffled, so nothing could be learnt; {told}"
    if not changed:
        return f"{moved}, a difference that chance explains."
    if after["accuracy"] < before["accuracy"]:
        return f"{moved}: training did harm. Look at validity and entropy in the report."
    return f"{moved}. {_kind(settings)}"


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
