"""`Guards`: decides on each optimizer step from its metrics.

    every step   rollouts -> loss and gradient -> Guards.observe -> optimizer step, or none

The trainer calls `Guards.observe` once for each optimizer step, after the gradient is computed and
before weights change, so that a decision can be carried out exactly. Metrics of the rollouts
describe the weights before the update. Metrics that a step does not have (a second update from the
same rollouts has no validity of its own) are left out of the dict, never repeated. Metrics of an
evaluation on held-out tasks are in the dict of the step after it.

The trainer carries out the decision. It makes the update if `Decision.update`, multiplies its
learning rate by `learning_rate_scale`, restores the snapshot from `choose_snapshot` on a roll-back,
and on a stop raises or returns with `diagnosis`. It takes a snapshot before the first step, and
others at any steps. `checks.GUARDS` has the guards with their actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from adapters.training.guards.checks import GUARDS, RunHistory, has_rollouts
from adapters.training.guards.config import Action, GuardConfig, GuardName

CALM: Final = 10  # steps without a trip after which the actions of a guard start over
MEMORY: Final = 100  # steps or updates after which roll-backs are forgotten
LOWER_BY: Final = 0.5  # factor on the learning rate
LOWEST_SCALE: Final = 1 / 16  # minimum factor on the learning rate in all
REMEMBERED: Final = 1000  # maximum number of healthy steps that are remembered


@dataclass(frozen=True)
class GuardFinding:
    """The finding of one guard at a step, and the action that it requests."""

    guard: GuardName
    action: Action
    reason: str
    advice: str


@dataclass(frozen=True)
class Decision:
    """The joint decision of all guards on a step.

    Attributes:
        step: The optimizer step.
        action: The most severe action that a guard requests.
        findings: The findings of guards that request an action, in the order of `GUARDS`.
        update: Whether to make the update of the step.
        learning_rate_scale: Factor on the scheduled learning rate from this step on.
        log_lines: Lines to log.
        diagnosis: Reasons of a stop, and advice; empty unless the action is `stop`.
    """

    step: int
    action: Action
    findings: tuple[GuardFinding, ...]
    update: bool
    learning_rate_scale: float
    log_lines: tuple[str, ...] = ()
    diagnosis: str = ""

    @property
    def reasons(self) -> tuple[str, ...]:
        """`guard: reason` of each finding."""
        return tuple(f"{finding.guard}: {finding.reason}" for finding in self.findings)


@dataclass
class GuardState:
    """The state of one guard.

    Attributes:
        taken: Number of actions taken since the last ten steps in a row without a trip.
        waited: Steps since the last action.
        calm: Number of steps in a row without a trip.
        times: Number of findings in the whole run.
        logged: Severity of the last logged finding.
    """

    taken: int = 0
    waited: int = 0
    calm: int = 0
    times: int = 0
    logged: int = 0

    def next_action(self, actions: Sequence[Action], wait: int, trips: bool) -> Action | None:
        """Count a step, and return the action that is due, or None."""
        self.waited, self.calm = self.waited + 1, 0 if trips else self.calm + 1
        if self.calm >= CALM:
            self.taken = 0
        if not trips or (self.taken and self.waited < wait):
            return None
        self.taken, self.waited = self.taken + 1, 0
        return actions[min(self.taken, len(actions)) - 1]


class Guards:
    """All guards of one run.

    >>> guards = Guards()
    >>> guards.observe(1, {"reward": 0.2, "loss": 0.1, "grad_norm": 1.0}).action.value
    'ok'
    >>> decision = guards.observe(2, {"loss": float("nan"), "grad_norm": float("nan")})
    >>> decision.action.value, decision.update, decision.reasons
    ('skip', False, ('gradient: loss and grad_norm not finite',))
    """

    def __init__(self, config: GuardConfig | None = None) -> None:
        self._config = config or GuardConfig()
        self._run = RunHistory()
        self._states = {guard.name: GuardState() for guard in GUARDS}
        self._healthy_steps = [0]
        self._returned: tuple[int, int] | None = None  # restored snapshot, step of the roll-back
        self._step = 0
        self._scale = 1.0
        self._counts = {"updates": 0, "skipped": 0, "roll_backs": 0, "recent": 0, "calm": 0}
        self._last = Action.OK

    def observe(self, step: int, metrics: Mapping[str, Any]) -> Decision:
        """Decide on the update from the weights after `step - 1` to those after `step`.

        Args:
            step: The optimizer step, from 1; it goes on counting after a roll-back.
            metrics: Values named as in `toolgym.runs.metrics`, nan and infinity included, over all
                processes, so that every process decides alike.
        """
        self._step = step
        now = self._run.add(step, metrics)
        findings: list[GuardFinding] = []
        bad_since = step + 1
        for guard in GUARDS:
            actions = self._config.actions.get(guard.name, guard.actions)
            if not actions or (guard.reads and now.keys().isdisjoint(guard.reads)):
                continue
            found = guard.check(now, self._run, self._config)
            wait = guard.wait if isinstance(guard.wait, int) else self._config.idle_steps
            action = self._states[guard.name].next_action(actions, wait, found is not None)
            if found is not None and guard.blames_weights:
                bad_since = min(bad_since, found.since or step)
            if found is not None and action is not None:
                advice = found.advice or guard.advice
                findings.append(GuardFinding(guard.name, action, found.reason, advice))
        healthy = [each for each in self._healthy_steps if each == 0 or each < bad_since - 1]
        is_healthy = has_rollouts(now) and bad_since > step
        self._healthy_steps = [*healthy, step - 1][-REMEMBERED:] if is_healthy else healthy
        return self._decide(findings, teaches=now.get("grad_norm") != 0)

    def _decide(self, findings: Sequence[GuardFinding], *, teaches: bool) -> Decision:
        requested = {finding.action for finding in findings}
        if not teaches:
            requested.add(Action.SKIP)  # at a gradient of 0 momentum would still move the weights
        action = max(requested, key=lambda each: each.severity, default=Action.OK)
        if action is Action.ROLL_BACK and self._counts["recent"] >= self._config.max_roll_backs:
            action = Action.STOP
        update = requested.isdisjoint({Action.SKIP, Action.ROLL_BACK, Action.STOP})
        lowers = action is Action.ROLL_BACK or Action.LOWER_LR in requested
        if self._config.only_warn:
            action = min(action, Action.WARN, key=lambda each: each.severity)
            action, update, lowers = action if findings else Action.OK, True, False
        if lowers and action is not Action.STOP:
            self._scale = max(LOWEST_SCALE, LOWER_BY * self._scale)
            for state in self._states.values():
                # A lower learning rate may help all guards, so all wait before they act again.
                # After a roll-back none has to: it only sees values of the restored weights.
                state.waited = MEMORY if action is Action.ROLL_BACK else 0
        self._count(action, update)
        lines = tuple(line for each in findings if (line := self._log_line(each, action)))
        diagnosis = self._diagnosis(findings) if action is Action.STOP else ""
        return Decision(self._step, action, tuple(findings), update, self._scale, lines, diagnosis)

    def _count(self, action: Action, update: bool) -> None:
        counts = self._counts
        self._last = action
        counts["updates"] += update
        counts["skipped"] += not update
        counts["calm"] += update and action.severity <= Action.WARN.severity
        if action is Action.ROLL_BACK:
            counts["roll_backs"] += 1
            counts["recent"] += 1
            counts["calm"] = 0
            self._run.restart()
        elif counts["calm"] >= MEMORY:
            counts["recent"] = counts["calm"] = 0

    def _log_line(self, finding: GuardFinding, action: Action) -> str:
        """The log line of a finding; empty if it is not to be logged.

        Findings are logged at the first, second, fourth, eighth time and so on, and if their action
        is more severe than the last logged one; roll-backs and stops are always logged.
        """
        state = self._states[finding.guard]
        state.times += 1
        taken = min(finding.action, action, key=lambda each: each.severity)
        if finding.action is Action.ROLL_BACK:
            taken = action  # may be a stop
        is_worse = taken.severity > state.logged
        is_always_logged = taken in (Action.ROLL_BACK, Action.STOP)
        if not (is_worse or state.times.bit_count() == 1 or is_always_logged):
            return ""
        state.logged = taken.severity
        advice = f" {finding.advice}" if state.times == 1 else ""
        seen = f" Seen {state.times} times so far." if state.times > 1 else ""
        return f"step {self._step}, {taken}, {finding.guard}: {finding.reason}.{advice}{seen}"

    def _diagnosis(self, findings: Sequence[GuardFinding]) -> str:
        """The message of a stop: its reasons, the counts of the run, and advice."""
        severest = sorted(findings, key=lambda finding: -finding.action.severity)
        counts = self._counts
        lines = [f"Training stops at step {self._step}."]
        lines += [f"- {finding.guard}: {finding.reason}." for finding in severest]
        lines.append(
            f"So far: {counts['updates']} updates, {counts['skipped']} skipped,"
            f" {counts['roll_backs']} roll-backs, learning rate scaled by {self._scale:g}."
        )
        if severest[0].action is not Action.STOP:
            lines.append(f"It was rolled back {counts['recent']} times lately, which did not help.")
        lines.append("Changes to try, the likeliest cause first:")
        advice = dict.fromkeys(finding.advice for finding in severest)
        return "\n".join([*lines, *(f"{number}. {each}" for number, each in enumerate(advice, 1))])

    def choose_snapshot(self, steps: Iterable[int]) -> int | None:
        """Choose the snapshot to restore on a roll-back.

        Args:
            steps: The optimizer steps after which a snapshot was taken, 0 for the one before the
                first step.

        Returns:
            The step of the latest snapshot whose weights sampled a batch in which no guard blamed
            the weights. Weights that were restored in the last 100 steps are skipped if there are
            others, since they led to a failure again. None if there is no snapshot: the trainer has
            to stop.
        """
        healthy = sorted(set(steps) & set(self._healthy_steps))
        if self._returned is not None and self._step - self._returned[1] <= MEMORY:
            # A snapshot taken at the step of the roll-back has the same weights.
            while len(healthy) > 1 and healthy[-1] in self._returned:
                healthy.pop()
        if not healthy:
            return None
        self._returned = (healthy[-1], self._step)
        self._healthy_steps = [step for step in self._healthy_steps if step <= healthy[-1]]
        return healthy[-1]

    @property
    def learning_rate_scale(self) -> float:
        """The factor on the learning rate; resumed runs keep it."""
        return self._scale

    @property
    def healthy_steps(self) -> list[int]:
        """The last steps after which the weights were healthy, at most `REMEMBERED`."""
        return list(self._healthy_steps)

    def metrics(self) -> dict[str, float]:
        """Metrics of the guards after the last `observe`, named as in `toolgym.runs.metrics`."""
        return {
            "guard_severity": float(self._last.severity),
            "updates": float(self._counts["updates"]),
            "skipped_updates": float(self._counts["skipped"]),
            "roll_backs": float(self._counts["roll_backs"]),
            "learning_rate_scale": self._scale,
        }

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, in JSON types."""
        return {
            "run": self._run.state_dict(),
            "guards": {name: asdict(state) for name, state in self._states.items()},
            "healthy": list(self._healthy_steps),
            "returned": list(self._returned) if self._returned else None,
            "step": self._step,
            "scale": self._scale,
            "counts": dict(self._counts),
            "last": self._last.value,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`."""
        self._run.load_state_dict(state["run"])
        self._states.update({name: GuardState(**saved) for name, saved in state["guards"].items()})
        self._healthy_steps = list(state["healthy"])
        returned = state["returned"]
        self._returned = (returned[0], returned[1]) if returned else None
        self._step, self._scale = state["step"], state["scale"]
        self._counts, self._last = dict(state["counts"]), Action(state["last"])


def rollback_message(step: int, place: int) -> str:
    """The log line of a roll-back to the weights after step `place`."""
    return (
        f"step {step}: weights and optimizer are restored from step {place}. The step count, the"
        " task order and random numbers continue, so that the batch that led here is not drawn"
        " again."
    )


def no_snapshot_message(step: int, reasons: Sequence[str], cure: str) -> str:
    """The message of a stop because there is no healthy snapshot to roll back to.

    Args:
        reasons: The reasons of the decision.
        cure: Advice on the settings of the trainer.
    """
    findings = "\n".join(f"- {reason}." for reason in reasons)
    return (
        f"Training stops at step {step}: a roll-back needs healthy weights, and there are none."
        f"\n{findings}\n{cure}"
    )
