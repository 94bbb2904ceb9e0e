"""Advice on settings for each guard that trips: the most likely cause first.

The causes are those that were seen. Where a step tells which it was (rollouts out of tokens, tasks
that nobody solves, a ceiling below the usual norm), its cure comes first, or alone where no other
can help. A cure that the run has already taken is not told again, and one that is known to fail is
named as such. Figures in the sentences are measured or follow from a formula; they say which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from adapters.training.guards.checks import is_spike
from adapters.training.guards.config import GuardConfig, GuardName, Setup
from adapters.training.guards.history import Cause, Evidence, Misfit, Observation


class CauseHint(NamedTuple):
    """The cause of a trip, as far as the step's metrics show it.

    Attributes:
        causes: Of nothing being learnt, the likeliest first.
        held: The guards that left updates out.
        misfit: A ceiling that is below the usual norm.
        ceiling: One that was exceeded, where it is not known yet whether it is below that.
    """

    causes: tuple[Cause, ...] = ()
    held: tuple[GuardName, ...] = ()
    misfit: Misfit | None = None
    ceiling: float | None = None


def hint_of(guard: GuardName, observation: Observation, config: GuardConfig) -> CauseHint:
    """The cause that a guard's trip points to, by the observation of its step."""
    if guard == "grad_norm":
        if is_spike(observation, config):
            return CauseHint()
        is_early = observation.usual_norm is None and observation.misfit is None
        return CauseHint(
            misfit=observation.misfit, ceiling=config.grad_norm_ceiling if is_early else None
        )
    if guard == "nothing_learnt" and observation.idle is not None:
        causes = observation.idle.causes(config.solved)
        held = tuple(observation.idle.held) if Cause.HELD in causes else ()
        return CauseHint(causes, held, observation.misfit)
    if guard not in _BY_ROLLOUTS:
        return CauseHint()
    step = Evidence()
    step.add(observation.metrics)
    lost = (Cause.FAULTS, Cause.OUT_OF_TOKENS)
    return CauseHint(tuple(cause for cause in step.causes(config.solved)[:1] if cause in lost))


def _no_std(setup: Setup) -> str | None:
    if setup.divides_by_std is False:
        return None
    rule = "Do not divide by a group's standard deviation (estimator `group_centered`, in TRL"
    rule += " scale_rewards='none'):"
    if setup.group_size == 2:
        return f"{rule} in groups of 2 it makes every advantage the same size, whatever the gap."
    return f"{rule} it makes the smallest gap as large as any other."


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


_WARM_UP: Final = (
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


_PREFLIGHT: Final = (
    "Run `toolgym preflight` on this model: it shows what the calls look like and why not."
)


def _sample(setup: Setup) -> str | None:
    if setup.has_sampling:
        return None
    return "Turn dynamic sampling on: dead groups are replaced by live ones."


_EASIER: Final = (
    "Play tasks that are sometimes done: easier ones first. Look into"
    " rollouts.jsonl for whether a right answer is judged right."
)
_HARDER: Final = "Stop here, or go on with harder tasks."


def _clip_higher(setup: Setup) -> str | None:
    if setup.ratio_high is not None and setup.ratio_high >= 0.28:
        return None
    return "Raise the upper bound of the ratio to 1.28: rare tokens can then become likelier."


_EXPLORE: Final = "Add a small entropy bonus, and sample at temperature 1."
_LESS_ENTROPY: Final = (
    "Lower the entropy bonus and the upper bound of the ratio, if they were raised."
)
_CLAMP: Final = (
    "Look for one token far from the reference or from the sampling policy: clamp log-ratios,"
    " compute log-probabilities in float32, and see that both see the same tokens."
)
_ENVIRONMENT: Final = (
    "Read the errors in rollouts.jsonl: the commonest one names what the calls do wrong."
)


def _more_room(setup: Setup) -> str | None:
    now = f" (it is {setup.max_tokens})" if setup.max_tokens is not None else ""
    room = setup.room() if setup.room is not None else None
    if room is None or room.expert is None or setup.max_tokens is None:
        return (
            f"Raise max_completion_length{now}, to twice as much for a beginning: a rollout that"
            " runs out of tokens has not answered, and is not learnt from."
        )
    longest = f"the longest of some rollouts of the environment's expert takes {room.expert} tokens"
    if room.expert <= setup.max_tokens:
        return (
            f"Warm up longer on demonstrations, or raise max_completion_length{now}: {longest},"
            " which fits, so the model writes more than it has to."
        )
    if room.expert > room.context:
        return (
            f"Take shorter prompts and results, or a model with a longer context: {longest}, and"
            f" after a prompt the model can read {room.context}, so a larger max_completion_length"
            f"{now} alone does not help."
        )
    return f"Raise max_completion_length{now} to {room.expert} or more: {longest}."


def _more_turns(setup: Setup) -> str | None:
    most, needed = setup.most_turns, setup.turns_needed
    if most is None or needed is None or most >= needed:
        return None
    return (
        f"Raise max_tool_calling_iterations (it is {most}) to {needed}, or leave it out: so many"
        " turns does the environment allow. Where `clipped` is high it is the tokens that are few."
    )


_FAULTS: Final = (
    "Repair the environment: the log names each fault, and a rollout that one left unscored is"
    " not learnt from."
)
_IN_BETWEEN: Final = (
    "Play tasks that are done now and then: leave out those that always or never are."
)
_WHAT_IS_TRAINED: Final = (
    "See that the parameters that are to be trained require gradients, and look at"
    " `learnt_tokens`, `unfinished` and `faults` of these steps in metrics.jsonl."
)


def _other_ceiling(misfit: Misfit) -> str:
    return (
        f"Set grad_norm_ceiling to {misfit.fits:g}, or leave it out: it is {misfit.ceiling:g}, and"
        f" the median of the last {misfit.measured} gradient norms is {misfit.usual:.3g}, so it"
        " leaves out more updates than it lets pass, and no lower learning rate changes that."
    )


Cure = str | Callable[[Setup], str | None]
_UPDATE: Final[tuple[Cure, ...]] = (
    _no_std,
    _larger_groups,
    _slower,
    _anchor,
    _fewer_updates,
)

_CURES: Final[dict[GuardName, tuple[Cure, ...]]] = {
    "non_finite": (_CLAMP, _slower),
    "broken_weights": (_CLAMP, _slower),
    "no_signal": (),
    "all_invalid": (_WARM_UP, _lenient, _PREFLIGHT),
    "update_collapse": _UPDATE,
    "collapse_share": _UPDATE,
    "validity": (*_UPDATE, _WARM_UP),
    "entropy_floor": (_clip_higher, _slower, _anchor, _EXPLORE, _no_std),
    "entropy_ceiling": (_LESS_ENTROPY, _slower, _anchor),
    "kl": (_slower, _anchor, _fewer_updates),
    "kl_spike": (_CLAMP, _slower),
    "grad_norm": (_slower, _no_std),
    "flat_reward": (_PREFLIGHT, _EASIER, _lenient, _WARM_UP),
    "dead_groups": (_sample, _larger_groups, _EASIER),
    "cost_noise": (_sample, _no_std),
    "solved": (_HARDER,),
    "tool_failures": (_lenient, _ENVIRONMENT, _WARM_UP, _anchor),
    "repairs": (_WARM_UP, _anchor),
    "nothing_learnt": (_WHAT_IS_TRAINED,),  # where no cause is known
}
_BY_CAUSE: Final[dict[Cause, tuple[Cure, ...]]] = {
    Cause.HELD: (),
    Cause.FAULTS: (_FAULTS,),
    Cause.OUT_OF_TOKENS: (_more_turns, _more_room),
    Cause.HARD: (_EASIER, _WARM_UP, _PREFLIGHT, _larger_groups, _lenient),
    Cause.EASY: (_HARDER,),
    Cause.DIVIDED: (_IN_BETWEEN, _larger_groups, _sample),
    Cause.UNKNOWN: (_WHAT_IS_TRAINED,),
}
_BY_ROLLOUTS: Final = ("all_invalid", "flat_reward", "dead_groups")


def advice(guard: GuardName, setup: Setup, hint: CauseHint | None = None) -> tuple[str, ...]:
    """Sentences that say which settings to change when a guard trips, the likeliest cure first.

    Args:
        hint: The cause, as far as the step shows it.

    >>> advice("repairs", Setup(kl_weight=0.02))[1]
    'Raise the weight of the KL term (it is 0.02).'
    """
    causes, held, misfit, ceiling = hint or CauseHint()
    if misfit is not None and (guard == "grad_norm" or "grad_norm" in held):
        return (_other_ceiling(misfit),)
    cures = [cure for cause in causes for cure in _BY_CAUSE[cause]]
    lines = [_sentence(cure, setup) for cure in cures]
    lines += [sentence for name in held for sentence in advice(name, setup)]
    if guard != "nothing_learnt" or not causes:
        lines += [_sentence(cure, setup) for cure in _CURES[guard]]
    if ceiling is not None:
        lines.append(
            f"If such norms are usual in this run, raise grad_norm_ceiling (it is {ceiling:g})."
        )
    return tuple(dict.fromkeys(sentence for sentence in lines if sentence is not None))


def _sentence(cure: Cure, setup: Setup) -> str | None:
    return cure if isinstance(cure, str) else cure(setup)
