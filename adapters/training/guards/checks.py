"""The guards: for each what it looks at, when it holds, how long it waits, and what it then does.

A check is a pure function of a `Look` and the config; it returns why it holds, or None. A guard
whose metrics a step does not have is passed over, and neither gains nor loses patience. When it has
held for `patience` steps in a row it trips, does the next of its `actions`, and begins to wait
anew. So what is mild goes first, and what did not help is not tried for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from adapters.training.guards.config import Action, GuardConfig, GuardName
from adapters.training.guards.evidence import Cause, told
from adapters.training.guards.history import Look

Check = Callable[[Look, GuardConfig], str | None]
OK, WARN, SKIP, LOWER_LR, ROLL_BACK, STOP = Action


@dataclass(frozen=True)
class Guard:
    """One guard.

    Attributes:
        name: Its name in config, findings and docs.
        needs: Metrics without which it says nothing.
        check: Why it holds at a step, or None.
        actions: At its first, second, ... trip; the last for all that follow.
        patience: The field of `GuardConfig` with its steps in a row; empty for one step.
        drops_update: Whatever the action, this step's update is not made.
        spoils: While it holds, the weights that sampled the batch are no place to return to.
        unbroken: A step at which it does not hold makes its next trip the first again; its reason
            tells by itself for how many steps it has held.
    """

    name: GuardName
    needs: tuple[str, ...]
    check: Check
    actions: tuple[Action, ...]
    patience: str = ""
    drops_update: bool = False
    spoils: bool = False
    unbroken: bool = False

    def steps(self, config: GuardConfig) -> int:
        """How many steps in a row it has to hold."""
        return int(getattr(config, self.patience)) if self.patience else 1


def _non_finite(look: Look, config: GuardConfig) -> str | None:
    if look.broken:
        return f"{' and '.join(look.broken)} not finite"
    count = look.numbers.get("nonfinite_gradients", 0.0)
    return f"the gradients of {count:.0f} parameters are not finite" if count else None


def _broken_weights(look: Look, config: GuardConfig) -> str | None:
    count = look.numbers["nonfinite_weights"]
    return f"{count:.0f} parameters are not finite" if count else None


def _no_signal(look: Look, config: GuardConfig) -> str | None:
    return "the gradient is 0: the step has nothing to teach" if _norm(look) == 0 else None


def _all_invalid(look: Look, config: GuardConfig) -> str | None:
    return "no turn of the step held a valid call" if look.numbers["validity"] == 0 else None


def _update_collapse(look: Look, config: GuardConfig) -> str | None:
    fall = look.fall
    if fall is None or not fall.is_collapse or fall.errors < config.collapse_errors:
        return None
    return f"validity fell from {fall.before:.0%} to {fall.after:.0%} over one update"


def _collapse_share(look: Look, config: GuardConfig) -> str | None:
    known, collapses = len(look.collapses), sum(look.collapses)
    enough = known >= config.collapse_least and look.fall is not None
    if not enough or collapses <= config.collapse_share * known:
        return None
    return f"{collapses} of the last {known} updates were followed by a collapse of validity"


def _validity(look: Look, config: GuardConfig) -> str | None:
    now, first = look.numbers["validity"], look.baseline.get("validity")
    if first is None or now >= config.min_validity * first:
        return None
    return f"validity is {now:.0%}, it was {first:.0%} in the first steps"


def _entropy_floor(look: Look, config: GuardConfig) -> str | None:
    now, first = look.numbers["entropy"], look.baseline.get("entropy")
    if look.numbers.get("accuracy", 0.0) >= config.solved:
        return None
    floors = [config.entropy_floor * first] if first is not None else []
    floors += [config.entropy_floor_nats] if config.entropy_floor_nats is not None else []
    if not floors or now >= max(floors):
        return None
    return _beyond("entropy", now, "below", max(floors), first)


def _entropy_ceiling(look: Look, config: GuardConfig) -> str | None:
    now, first = look.numbers["entropy"], look.baseline.get("entropy")
    ceilings = [config.entropy_ceiling * first] if first else []
    ceilings += [config.entropy_ceiling_nats] if config.entropy_ceiling_nats is not None else []
    if not ceilings or now <= min(ceilings):
        return None
    return _beyond("entropy", now, "above", min(ceilings), first)


def _beyond(name: str, now: float, side: str, limit: float, first: float | None) -> str:
    since = f", it was {first:.3g} in the first steps" if first is not None else ""
    return f"{name} is {now:.3g} nats, {side} {limit:.3g}{since}"


def _kl(look: Look, config: GuardConfig) -> str | None:
    now = look.numbers["kl"]
    if now <= config.kl_ceiling:
        return None
    return f"the policy is {now:.3g} nats per token from its reference, above {config.kl_ceiling:g}"


def _kl_spike(look: Look, config: GuardConfig) -> str | None:
    now, limit = look.numbers["kl"], config.kl_spike * config.kl_ceiling
    return f"KL of the step is {now:.3g} nats per token" if now > limit else None


def _grad_norm(look: Look, config: GuardConfig) -> str | None:
    now = _norm(look)
    if is_spike(look, config):
        return f"the gradient norm is {now:.3g}, usual is {look.usual_norm:.3g}"
    limit = config.grad_norm_ceiling
    if limit is None or now <= limit:
        return None
    seen = f"the gradient norm is {now:.3g}, above the ceiling of {limit:g}"
    if look.misfit is None:
        return seen
    return f"{seen}, and so is the usual one of this run, {look.misfit.usual:.3g}"


def is_spike(look: Look, config: GuardConfig) -> bool:
    """Whether the gradient norm is far above the usual one."""
    usual = look.usual_norm
    return usual is not None and _norm(look) > config.grad_norm_spike * usual


def _norm(look: Look) -> float:
    return look.numbers["grad_norm"]


def _flat_reward(look: Look, config: GuardConfig) -> str | None:
    numbers = look.numbers
    best = max(numbers["reward"], numbers.get("reward_max", numbers["reward"]))
    if best > config.reward_floor or numbers.get("accuracy", 0.0) > 0:
        return None
    return f"no rollout earned more than {config.reward_floor:g}"


def _is_solved(look: Look, config: GuardConfig) -> bool:
    return look.numbers.get("accuracy", 0.0) >= config.solved


def _dead_groups(look: Look, config: GuardConfig) -> str | None:
    share = look.numbers["dead_groups"]
    if share < config.dead_groups or _is_solved(look, config):
        return None
    same = look.numbers.get("zero_variance_groups")
    rewards = f", and equal rewards in {same:.0%}" if same is not None else ""
    return f"all members had the same outcome in {share:.0%} of the groups{rewards}"


def _cost_noise(look: Look, config: GuardConfig) -> str | None:
    if "drawn_groups" in look.numbers:
        return None  # dynamic sampling keeps such groups out of the update
    dead, same = look.numbers["dead_groups"], look.numbers["zero_variance_groups"]
    if dead < config.dead_groups or same > dead / 2 or _is_solved(look, config):
        return None
    return (
        f"{dead:.0%} of the groups had equal outcomes but only {same:.0%} equal rewards: what is"
        " learnt is the cost of a call more or less"
    )


def _solved(look: Look, config: GuardConfig) -> str | None:
    if not _is_solved(look, config) or look.numbers["dead_groups"] < config.dead_groups:
        return None
    return f"{look.numbers['accuracy']:.0%} of the rollouts are right: these tasks are learnt"


def _tool_failures(look: Look, config: GuardConfig) -> str | None:
    now, first = look.numbers["tool_failures"], look.baseline.get("tool_failures")
    if first is None or now <= min(0.9, max(config.tool_failures, first + 0.3)):
        return None
    return f"{now:.0%} of the calls ended in an error, {first:.0%} did in the first steps"


def _repairs(look: Look, config: GuardConfig) -> str | None:
    now, first = look.numbers["repairs_per_call"], look.baseline.get("repairs_per_call")
    if first is None or now <= max(config.repairs_per_call, min(1.0, 3 * first)):
        return None
    return f"a call needs {now:.2g} repairs, it needed {first:.2g} in the first steps"


def _nothing_learnt(look: Look, config: GuardConfig) -> str | None:
    if look.idle is None:
        return None
    seen = "; ".join(told(look.idle, cause) for cause in look.idle.causes(config.solved))
    return f"nothing was learnt in {look.idle.steps} steps in a row: {seen}"


def tempered(guard: Guard, action: Action, look: Look, config: GuardConfig) -> Action:
    """What a guard does at a trip, where its own list has more than can help.

    A lower learning rate makes no gradient smaller, so it is not lowered for a ceiling unless that
    is known to be above the usual norm. And a run that has learnt its tasks has not failed. A list
    that the user has given is kept to.
    """
    if guard.name in config.actions:
        return action
    if guard.name == "nothing_learnt" and look.idle is not None:
        is_learnt = look.idle.causes(config.solved)[0] is Cause.EASY
        return min(action, WARN, key=lambda a: a.severity) if is_learnt else action
    if guard.name != "grad_norm" or action is not LOWER_LR:
        return action
    is_known_to_fit = look.usual_norm is not None and look.misfit is None
    return action if is_known_to_fit or is_spike(look, config) else SKIP


_RETREAT: Final = (ROLL_BACK, ROLL_BACK, STOP)
_GROUPS: Final = ("dead_groups", "zero_variance_groups")

GUARDS: Final[tuple[Guard, ...]] = (
    Guard(
        "non_finite",
        (),
        _non_finite,
        (SKIP, SKIP, ROLL_BACK, ROLL_BACK, STOP),
        drops_update=True,
        spoils=True,
    ),
    Guard(
        "broken_weights",
        ("nonfinite_weights",),
        _broken_weights,
        _RETREAT,
        drops_update=True,
        spoils=True,
    ),
    Guard("no_signal", ("grad_norm",), _no_signal, (SKIP,), drops_update=True),
    Guard(
        "all_invalid",
        ("validity",),
        _all_invalid,
        (*(SKIP,) * 9, STOP),  # `validity` goes back before, if there is anything to go back to
        drops_update=True,
        spoils=True,
    ),
    Guard("update_collapse", ("validity",), _update_collapse, _RETREAT, spoils=True),
    Guard("collapse_share", ("validity",), _collapse_share, (STOP,), spoils=True),
    Guard("validity", ("validity",), _validity, _RETREAT, "patience", spoils=True),
    Guard("entropy_floor", ("entropy",), _entropy_floor, _RETREAT, "patience", spoils=True),
    Guard(
        "entropy_ceiling",
        ("entropy",),
        _entropy_ceiling,
        (LOWER_LR, ROLL_BACK, ROLL_BACK, STOP),
        "patience",
        spoils=True,
    ),
    Guard("kl", ("kl",), _kl, (LOWER_LR, ROLL_BACK, ROLL_BACK, STOP), "patience", spoils=True),
    Guard("kl_spike", ("kl",), _kl_spike, (SKIP, SKIP, ROLL_BACK), drops_update=True, spoils=True),
    Guard("grad_norm", ("grad_norm",), _grad_norm, (SKIP, SKIP, LOWER_LR), drops_update=True),
    Guard("flat_reward", ("reward",), _flat_reward, (WARN, WARN, STOP), "reward_patience"),
    Guard("dead_groups", ("dead_groups",), _dead_groups, (WARN, WARN, STOP), "dead_patience"),
    Guard("cost_noise", _GROUPS, _cost_noise, (WARN,), "dead_patience"),
    Guard("solved", ("accuracy", "dead_groups"), _solved, (WARN,), "dead_patience"),
    Guard(
        "tool_failures",
        ("tool_failures",),
        _tool_failures,
        (WARN, ROLL_BACK, STOP),
        "patience",
        spoils=True,
    ),
    Guard("repairs", ("repairs_per_call",), _repairs, (WARN,), "patience"),
    Guard(  # the last, since it has to know whether another one leaves the update out
        "nothing_learnt",
        (),
        _nothing_learnt,
        (WARN, WARN, STOP),
        "nothing_patience",
        unbroken=True,
    ),
)
