"""The table of guards: metrics, check, patience and actions of each.

A check is a pure function of an `Observation` and the config; it returns why the guard holds, or
None. A guard whose metrics a step does not have is passed over, and neither gains nor loses
patience. When it has held for `patience` steps in a row it trips, asks for the next of its
`actions`, and begins to wait anew. So what is mild goes first, and what did not help is not tried
for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from adapters.training.guards.config import Action, GuardConfig, GuardName
from adapters.training.guards.history import Cause, Observation, describe_cause

Check = Callable[[Observation, GuardConfig], str | None]
OK, WARN, SKIP, LOWER_LR, ROLL_BACK, STOP = Action


@dataclass(frozen=True)
class Guard:
    """One guard: a check of a step's metrics, and the actions that follow when it trips.

    Attributes:
        name: Its name in config, findings and docs.
        needs: Metrics without which it says nothing.
        check: The reason why it holds at a step, or None.
        actions: At its first, second, ... trip; the last for all that follow.
        patience: The field of `GuardConfig` with its steps in a row; empty for one step.
        drops_update: Whatever the action, this step's update is not made.
        marks_unhealthy: While it holds, the weights that sampled the batch are not healthy: no
            roll-back restores them.
        unbroken: A step at which it does not hold makes its next trip the first again; its reason
            tells by itself for how many steps it has held.
    """

    name: GuardName
    needs: tuple[str, ...]
    check: Check
    actions: tuple[Action, ...]
    patience: str = ""
    drops_update: bool = False
    marks_unhealthy: bool = False
    unbroken: bool = False

    def steps(self, config: GuardConfig) -> int:
        """The number of consecutive steps for which the guard has to hold before it trips."""
        return int(getattr(config, self.patience)) if self.patience else 1


def _non_finite(observation: Observation, config: GuardConfig) -> str | None:
    if observation.broken:
        return f"{' and '.join(observation.broken)} not finite"
    count = observation.metrics.get("nonfinite_gradients", 0.0)
    return f"the gradients of {count:.0f} parameters are not finite" if count else None


def _broken_weights(observation: Observation, config: GuardConfig) -> str | None:
    count = observation.metrics["nonfinite_weights"]
    return f"{count:.0f} parameters are not finite" if count else None


def _no_signal(observation: Observation, config: GuardConfig) -> str | None:
    return "the gradient is 0: the step has nothing to teach" if _norm(observation) == 0 else None


def _all_invalid(observation: Observation, config: GuardConfig) -> str | None:
    return "no turn of the step held a valid call" if observation.metrics["validity"] == 0 else None


def _update_collapse(observation: Observation, config: GuardConfig) -> str | None:
    drop = observation.drop
    if drop is None or not drop.is_collapse or drop.errors < config.collapse_errors:
        return None
    return f"validity fell from {drop.before:.0%} to {drop.after:.0%} over one update"


def _collapse_share(observation: Observation, config: GuardConfig) -> str | None:
    measured, collapses = len(observation.collapses), sum(observation.collapses)
    enough = measured >= config.collapse_least and observation.drop is not None
    if not enough or collapses <= config.collapse_share * measured:
        return None
    return f"{collapses} of the last {measured} updates were followed by a collapse of validity"


def _validity(observation: Observation, config: GuardConfig) -> str | None:
    now, first = observation.metrics["validity"], observation.baseline.get("validity")
    if first is None or now >= config.min_validity * first:
        return None
    return f"validity is {now:.0%}, it was {first:.0%} in the first steps"


def _entropy_floor(observation: Observation, config: GuardConfig) -> str | None:
    now, first = observation.metrics["entropy"], observation.baseline.get("entropy")
    if observation.metrics.get("accuracy", 0.0) >= config.solved:
        return None
    floors = [config.entropy_floor * first] if first is not None else []
    floors += [config.entropy_floor_nats] if config.entropy_floor_nats is not None else []
    if not floors or now >= max(floors):
        return None
    return _beyond("entropy", now, "below", max(floors), first)


def _entropy_ceiling(observation: Observation, config: GuardConfig) -> str | None:
    now, first = observation.metrics["entropy"], observation.baseline.get("entropy")
    ceilings = [config.entropy_ceiling * first] if first else []
    ceilings += [config.entropy_ceiling_nats] if config.entropy_ceiling_nats is not None else []
    if not ceilings or now <= min(ceilings):
        return None
    return _beyond("entropy", now, "above", min(ceilings), first)


def _beyond(name: str, now: float, side: str, limit: float, first: float | None) -> str:
    since = f", it was {first:.3g} in the first steps" if first is not None else ""
    return f"{name} is {now:.3g} nats, {side} {limit:.3g}{since}"


def _kl(observation: Observation, config: GuardConfig) -> str | None:
    now = observation.metrics["kl"]
    if now <= config.kl_ceiling:
        return None
    return f"the policy is {now:.3g} nats per token from its reference, above {config.kl_ceiling:g}"


def _kl_spike(observation: Observation, config: GuardConfig) -> str | None:
    now, limit = observation.metrics["kl"], config.kl_spike * config.kl_ceiling
    return f"KL of the step is {now:.3g} nats per token" if now > limit else None


def _grad_norm(observation: Observation, config: GuardConfig) -> str | None:
    now = _norm(observation)
    if is_spike(observation, config):
        return f"the gradient norm is {now:.3g}, usual is {observation.usual_norm:.3g}"
    limit = config.grad_norm_ceiling
    if limit is None or now <= limit:
        return None
    seen = f"the gradient norm is {now:.3g}, above the ceiling of {limit:g}"
    if observation.misfit is None:
        return seen
    return f"{seen}, and so is the usual one of this run, {observation.misfit.usual:.3g}"


def is_spike(observation: Observation, config: GuardConfig) -> bool:
    """Whether the gradient norm is above `grad_norm_spike` times its running median."""
    usual = observation.usual_norm
    return usual is not None and _norm(observation) > config.grad_norm_spike * usual


def _norm(observation: Observation) -> float:
    return observation.metrics["grad_norm"]


def _flat_reward(observation: Observation, config: GuardConfig) -> str | None:
    metrics = observation.metrics
    best = max(metrics["reward"], metrics.get("reward_max", metrics["reward"]))
    if best > config.reward_floor or metrics.get("accuracy", 0.0) > 0:
        return None
    return f"no rollout earned more than {config.reward_floor:g}"


def _is_solved(observation: Observation, config: GuardConfig) -> bool:
    return observation.metrics.get("accuracy", 0.0) >= config.solved


def _dead_groups(observation: Observation, config: GuardConfig) -> str | None:
    share = observation.metrics["dead_groups"]
    if share < config.dead_groups or _is_solved(observation, config):
        return None
    same = observation.metrics.get("zero_variance_groups")
    rewards = f", and equal rewards in {same:.0%}" if same is not None else ""
    return f"all members had the same outcome in {share:.0%} of the groups{rewards}"


def _cost_noise(observation: Observation, config: GuardConfig) -> str | None:
    if "drawn_groups" in observation.metrics:
        return None  # dynamic sampling keeps such groups out of the update
    dead, same = observation.metrics["dead_groups"], observation.metrics["zero_variance_groups"]
    if dead < config.dead_groups or same > dead / 2 or _is_solved(observation, config):
        return None
    return (
        f"{dead:.0%} of the groups had equal outcomes but only {same:.0%} equal rewards: what is"
        " learnt is the cost of a call more or less"
    )


def _solved(observation: Observation, config: GuardConfig) -> str | None:
    if (
        not _is_solved(observation, config)
        or observation.metrics["dead_groups"] < config.dead_groups
    ):
        return None
    return (
        f"{observation.metrics['accuracy']:.0%} of the rollouts are right: these tasks are learnt"
    )


def _tool_failures(observation: Observation, config: GuardConfig) -> str | None:
    now, first = observation.metrics["tool_failures"], observation.baseline.get("tool_failures")
    if first is None or now <= min(0.9, max(config.tool_failures, first + 0.3)):
        return None
    return f"{now:.0%} of the calls ended in an error, {first:.0%} did in the first steps"


def _repairs(observation: Observation, config: GuardConfig) -> str | None:
    now, first = (
        observation.metrics["repairs_per_call"],
        observation.baseline.get("repairs_per_call"),
    )
    if first is None or now <= max(config.repairs_per_call, min(1.0, 3 * first)):
        return None
    return f"a call needs {now:.2g} repairs, it needed {first:.2g} in the first steps"


def _nothing_learnt(observation: Observation, config: GuardConfig) -> str | None:
    idle = observation.idle
    if idle is None:
        return None
    causes = "; ".join(describe_cause(idle, cause) for cause in idle.causes(config.solved))
    return f"nothing was learnt in {idle.steps} steps in a row: {causes}"


def adjusted_action(
    guard: Guard, action: Action, observation: Observation, config: GuardConfig
) -> Action:
    """The action of a guard at a trip, made milder where a severer one cannot help.

    A lower learning rate makes no gradient smaller, so it is not lowered for a ceiling unless that
    is known to be above the usual norm. And a run that has learnt its tasks has not failed. A list
    that the user has given is kept to.
    """
    if guard.name in config.actions:
        return action
    if guard.name == "nothing_learnt" and observation.idle is not None:
        is_learnt = observation.idle.causes(config.solved)[0] is Cause.EASY
        return min(action, WARN, key=lambda a: a.severity) if is_learnt else action
    if guard.name != "grad_norm" or action is not LOWER_LR:
        return action
    is_known_to_fit = observation.usual_norm is not None and observation.misfit is None
    return action if is_known_to_fit or is_spike(observation, config) else SKIP


_ROLL_BACKS: Final = (ROLL_BACK, ROLL_BACK, STOP)
_GROUPS: Final = ("dead_groups", "zero_variance_groups")

GUARDS: Final[tuple[Guard, ...]] = (
    Guard(
        "non_finite",
        (),
        _non_finite,
        (SKIP, SKIP, ROLL_BACK, ROLL_BACK, STOP),
        drops_update=True,
        marks_unhealthy=True,
    ),
    Guard(
        "broken_weights",
        ("nonfinite_weights",),
        _broken_weights,
        _ROLL_BACKS,
        drops_update=True,
        marks_unhealthy=True,
    ),
    Guard("no_signal", ("grad_norm",), _no_signal, (SKIP,), drops_update=True),
    Guard(
        "all_invalid",
        ("validity",),
        _all_invalid,
        (*(SKIP,) * 9, STOP),  # `validity` goes back before, if there is anything to go back to
        drops_update=True,
        marks_unhealthy=True,
    ),
    Guard("update_collapse", ("validity",), _update_collapse, _ROLL_BACKS, marks_unhealthy=True),
    Guard("collapse_share", ("validity",), _collapse_share, (STOP,), marks_unhealthy=True),
    Guard("validity", ("validity",), _validity, _ROLL_BACKS, "patience", marks_unhealthy=True),
    Guard(
        "entropy_floor", ("entropy",), _entropy_floor, _ROLL_BACKS, "patience", marks_unhealthy=True
    ),
    Guard(
        "entropy_ceiling",
        ("entropy",),
        _entropy_ceiling,
        (LOWER_LR, ROLL_BACK, ROLL_BACK, STOP),
        "patience",
        marks_unhealthy=True,
    ),
    Guard(
        "kl", ("kl",), _kl, (LOWER_LR, ROLL_BACK, ROLL_BACK, STOP), "patience", marks_unhealthy=True
    ),
    Guard(
        "kl_spike",
        ("kl",),
        _kl_spike,
        (SKIP, SKIP, ROLL_BACK),
        drops_update=True,
        marks_unhealthy=True,
    ),
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
        marks_unhealthy=True,
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
