"""What to change, for each guard that trips: the most likely cause first.

The causes are those that were seen. A cure that the run has already taken is not told again, and
one that is known to fail is named as such, so a trainer hands over what it knows of its settings.
Figures in the sentences are measured or follow from a formula; they say which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from adapters.training.guard_config import GuardName


@dataclass(frozen=True)
class Setup:
    """What a trainer knows of its settings; None where it does not.

    Attributes:
        group_size: Rollouts of a task that are compared.
        divides_by_std: Advantages of a group are divided by its own standard deviation.
        kl_weight: Of the divergence from the reference.
        learning_rate: At its highest.
        ratio_high: Upper clip bound minus 1.
        updates_per_batch: Updates made from one batch of rollouts.
        has_sampling: Dead groups are replaced or masked.
        parsing: Of the environment, `lenient` or `strict`.
    """

    group_size: int | None = None
    divides_by_std: bool | None = None
    kl_weight: float | None = None
    learning_rate: float | None = None
    ratio_high: float | None = None
    updates_per_batch: int | None = None
    has_sampling: bool | None = None
    parsing: str | None = None


def _no_std(setup: Setup) -> str | None:
    if setup.divides_by_std is False:
        return None
    told = "Do not divide by a group's standard deviation (estimator `group_centered`, in TRL"
    told += " scale_rewards='none'):"
    if setup.group_size == 2:
        return f"{told} in groups of 2 it makes every advantage the same size, whatever the gap."
    return f"{told} it makes the smallest gap as large as any other."


def _larger_groups(setup: Setup) -> str | None:
    if setup.group_size is not None and setup.group_size >= 8:
        return None
    return (
        "Compare 8 or more rollouts of a task: at a success rate of 20 %, groups of 2 are all alike"
        " in 68 % of the cases, groups of 8 in 17 %."
    )


def _slower(setup: Setup) -> str | None:
    now = f" (it is {setup.learning_rate:g})" if setup.learning_rate is not None else ""
    if setup.group_size == 2:  # a run on groups of 2 collapsed as before at a tenth of its rate
        return f"A lower learning rate{now} alone does not help groups of 2."
    return f"Lower the learning rate{now} by a factor of 3 to 10."


def _anchor(setup: Setup) -> str | None:
    if setup.kl_weight:
        return f"Raise the weight of the KL term (it is {setup.kl_weight:g})."
    return (
        "Anchor the policy: a KL weight of .01 to .05 to the warmed-up model, not to the one that"
        " the warm-up began with."
    )


def _fewer_updates(setup: Setup) -> str | None:
    if setup.updates_per_batch == 1:
        return None
    return "Make one update from each batch of rollouts: later ones learn from what is stale."


def _warm_up(setup: Setup) -> str | None:
    return (
        "Warm up longer on demonstrations, and look at what they render to: arguments that are null"
        " there are null in every call afterwards."
    )


def _lenient(setup: Setup) -> str | None:
    if setup.parsing == "lenient":
        return None
    return (
        "Use parsing='lenient': refused for an extra null, every rollout of a group fails alike,"
        " and nothing can be learnt from that."
    )


def _preflight(setup: Setup) -> str | None:
    return "Run `toolgym preflight` on this model: it shows what the calls look like and why not."


def _sample(setup: Setup) -> str | None:
    if setup.has_sampling:
        return None
    return "Turn dynamic sampling on: dead groups are replaced by live ones."


def _easier(setup: Setup) -> str | None:
    return (
        "Play tasks that are sometimes done: easier ones first, or a curriculum by success; look"
        " into rollouts.jsonl for whether a right answer is judged right."
    )


def _harder(setup: Setup) -> str | None:
    return "Stop here, or go on with harder tasks."


def _clip_higher(setup: Setup) -> str | None:
    if setup.ratio_high is not None and setup.ratio_high >= 0.28:
        return None
    return "Raise the upper bound of the ratio to 1.28: rare tokens can then become likelier."


def _explore(setup: Setup) -> str | None:
    return "Add a small entropy bonus, and sample at temperature 1."


def _less_entropy(setup: Setup) -> str | None:
    return "Lower the entropy bonus and the upper bound of the ratio, if they were raised."


def _clamp(setup: Setup) -> str | None:
    return (
        "Look for one token far from the reference or from the sampling policy: clamp log-ratios,"
        " compute log-probabilities in float32, and see that both see the same tokens."
    )


def _environment(setup: Setup) -> str | None:
    return "Read the errors in rollouts.jsonl: the commonest one names what the calls do wrong."


Cure = Callable[[Setup], str | None]
_UPDATE: Final[tuple[Cure, ...]] = (_no_std, _larger_groups, _slower, _anchor, _fewer_updates)

_CURES: Final[dict[GuardName, tuple[Cure, ...]]] = {
    "non_finite": (_clamp, _slower),
    "broken_weights": (_clamp, _slower),
    "no_signal": (),
    "all_invalid": (_warm_up, _lenient, _preflight),
    "update_collapse": _UPDATE,
    "collapse_share": _UPDATE,
    "validity": (*_UPDATE, _warm_up),
    "entropy_floor": (_clip_higher, _slower, _anchor, _explore, _no_std),
    "entropy_ceiling": (_less_entropy, _slower, _anchor),
    "kl": (_slower, _anchor, _fewer_updates),
    "kl_spike": (_clamp, _slower),
    "grad_norm": (_slower, _no_std),
    "flat_reward": (_preflight, _easier, _lenient, _warm_up),
    "dead_groups": (_sample, _larger_groups, _easier),
    "cost_noise": (_sample, _no_std),
    "solved": (_harder,),
    "tool_failures": (_lenient, _environment, _warm_up, _anchor),
    "repairs": (_warm_up, _anchor),
}


def advice(guard: GuardName, setup: Setup) -> tuple[str, ...]:
    """What to change when a guard trips, the likeliest cure first.

    >>> advice("repairs", Setup(kl_weight=0.02))[1]
    'Raise the weight of the KL term (it is 0.02).'
    """
    told = (cure(setup) for cure in _CURES[guard])
    return tuple(sentence for sentence in told if sentence is not None)
