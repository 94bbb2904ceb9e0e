"""`Guards` decides whether to make each optimizer step, based on the metrics of the step.

    rollouts -> loss and gradient -> Guards.observe -> optimizer step, unless a guard skips it

The trainer calls `Guards.observe` once for each optimizer step, after the gradient is computed and
before the weights change. Metrics of the rollouts describe the weights before the update. Omit
metrics that a step does not have; for example, a second update from the same rollouts has no new
value of `validity`. Pass the metrics of an evaluation on held-out tasks together with the metrics
of the next step.

The trainer carries out the decision:

- It makes the update if `Decision.update` is True.
- It multiplies its learning rate by `learning_rate_scale`.
- On a roll-back it restores the snapshot from `choose_snapshot`.
- On a stop it ends the run and reports `diagnosis`.

The trainer takes a snapshot before the first step and may take others after any step.
`checks.GUARDS` lists the guards with their actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from adapters.training.guards.checks import GUARDS, RunHistory, has_rollouts
from adapters.training.guards.config import Action, GuardConfig, GuardName

CALM: Final = 10  # steps without a trip after which the actions of a guard start over
MEMORY: Final = 100  # steps or updates after which roll-backs no longer count
LOWER_BY: Final = 0.5  # factor on the learning rate for each reduction
LOWEST_SCALE: Final = 1 / 16  # lower bound of the product of all factors
REMEMBERED: Final = 1000  # maximum number of healthy steps in the state


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
        action: The most severe action that any guard requests.
        findings: Findings of the guards that request an action, in the order of `GUARDS`.
        update: Whether to make the update of the step.
        learning_rate_scale: Factor by which the scheduled learning rate is multiplied from this
            step on.
        log_lines: Lines to log.
        diagnosis: Reasons for a stop, and advice; empty unless the action is `stop`.
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
        """The findings as strings of the form `guard: reason`."""
        return tuple(f"{finding.guard}: {finding.reason}" for finding in self.findings)


class GuardState(BaseModel):
    """The state of one guard.

    Attributes:
        taken: Number of actions requested since the guard last went ten consecutive steps without
            tripping.
        waited: Steps since the last action.
        calm: Number of consecutive steps without a trip.
        times: Number of findings in the entire run.
        logged: Severity of the last logged finding.
    """

    taken: int = 0
    waited: int = 0
    calm: int = 0
    times: int = 0
    logged: int = 0

    def next_action(self, actions: Sequence[Action], wait: int, trips: bool) -> Action | None:
        """Count a step, and return the action that is due, or None if no action is due."""
        self.waited, self.calm = self.waited + 1, 0 if trips else self.calm + 1
        if self.calm >= CALM:
            self.taken = 0
        if not trips or (self.taken and self.waited < wait):
            return None
        self.taken, self.waited = self.taken + 1, 0
        return actions[min(self.taken, len(actions)) - 1]


class GuardsState(BaseModel):
    """The state of all guards of a run.

    Attributes:
        run: The metrics of the run.
        guards: The state of each guard.
        healthy: The latest steps after which the weights were found healthy.
        returned: The step of the snapshot that was last restored, and the step at which the
            roll-back happened.
        step: The last step.
        scale: Factor on the scheduled learning rate.
        updates: Number of updates.
        skipped: Number of skipped updates.
        roll_backs: Number of roll-backs.
        recent: Number of roll-backs that count toward the limit.
        calm: Number of updates since the last roll-back for which no guard requested more than a
            warning.
        last: The action of the last decision.
    """

    run: RunHistory = RunHistory()
    guards: dict[GuardName, GuardState] = {guard.name: GuardState() for guard in GUARDS}
    healthy: list[int] = [0]
    returned: tuple[int, int] | None = None
    step: int = 0
    scale: float = 1.0
    updates: int = 0
    skipped: int = 0
    roll_backs: int = 0
    recent: int = 0
    calm: int = 0
    last: Action = Action.OK


class Guards:
    """The guards of one run.

    >>> guards = Guards()
    >>> guards.observe(1, {"reward": 0.2, "loss": 0.1, "grad_norm": 1.0}).action.value
    'ok'
    >>> decision = guards.observe(2, {"loss": float("nan"), "grad_norm": float("nan")})
    >>> decision.action.value, decision.update, decision.reasons
    ('skip', False, ('gradient: loss and grad_norm are not finite',))
    """

    def __init__(self, config: GuardConfig | None = None) -> None:
        self._config = config or GuardConfig()
        self._state = GuardsState()

    def observe(self, step: int, metrics: Mapping[str, Any]) -> Decision:
        """Decide whether to make the update of a step, given its metrics.

        Args:
            step: The optimizer step, from 1. Step numbers keep increasing after a roll-back.
            metrics: Metrics of the step, named as in `toolgym.runs.metrics`, including nan and
                infinite values. Pass values aggregated over all processes, so that every process
                makes the same decision.
        """
        state, self._state.step = self._state, step
        now = state.run.add(step, metrics)
        findings: list[GuardFinding] = []
        bad_since = step + 1
        for guard in GUARDS:
            actions = self._config.actions.get(guard.name, guard.actions)
            if not actions or (guard.reads and now.keys().isdisjoint(guard.reads)):
                continue
            found = guard.check(now, state.run, self._config)
            wait = guard.wait if isinstance(guard.wait, int) else self._config.idle_steps
            action = state.guards[guard.name].next_action(actions, wait, found is not None)
            if found is not None and guard.blames_weights:
                bad_since = min(bad_since, found.since or step)
            if found is not None and action is not None:
                advice = found.advice or guard.advice
                findings.append(GuardFinding(guard.name, action, found.reason, advice))
        state.healthy = [each for each in state.healthy if each == 0 or each < bad_since - 1]
        if has_rollouts(now) and bad_since > step:
            state.healthy = [*state.healthy, step - 1][-REMEMBERED:]
        return self._decide(findings, teaches=now.get("grad_norm") != 0)

    def _decide(self, findings: Sequence[GuardFinding], *, teaches: bool) -> Decision:
        state, requested = self._state, {finding.action for finding in findings}
        if not teaches:
            requested.add(Action.SKIP)  # momentum moves the weights even at a gradient of 0
        action = max(requested, key=lambda each: each.severity, default=Action.OK)
        if action is Action.ROLL_BACK and state.recent >= self._config.max_roll_backs:
            action = Action.STOP
        update = requested.isdisjoint({Action.SKIP, Action.ROLL_BACK, Action.STOP})
        lowers = action is Action.ROLL_BACK or Action.LOWER_LR in requested
        if self._config.only_warn:
            action = min(action, Action.WARN, key=lambda each: each.severity)
            action, update, lowers = action if findings else Action.OK, True, False
        if lowers and action is not Action.STOP:
            state.scale = max(LOWEST_SCALE, LOWER_BY * state.scale)
            for guard in state.guards.values():
                # After the learning rate was lowered, all guards wait before they act again, since
                # it may help all of them. After a roll-back none has to wait, since it only sees
                # values of the restored weights.
                guard.waited = MEMORY if action is Action.ROLL_BACK else 0
        state.last = action
        state.updates += update
        state.skipped += not update
        state.calm += update and action.severity <= Action.WARN.severity
        if action is Action.ROLL_BACK:
            state.roll_backs, state.recent, state.calm = state.roll_backs + 1, state.recent + 1, 0
            state.run.restart()
        elif state.calm >= MEMORY:
            state.recent = state.calm = 0
        lines = tuple(line for each in findings if (line := self._log_line(each, action)))
        diagnosis = self._diagnosis(findings) if action is Action.STOP else ""
        return Decision(state.step, action, tuple(findings), update, state.scale, lines, diagnosis)

    def _log_line(self, finding: GuardFinding, action: Action) -> str:
        """Return the log line of a finding, or an empty string if it is not logged.

        A finding is logged at its first, second, fourth, eighth, etc. occurrence, and whenever its
        action is more severe than the last logged one. Roll-backs and stops are always logged.
        """
        state = self._state.guards[finding.guard]
        state.times += 1
        taken = min(finding.action, action, key=lambda each: each.severity)
        if finding.action is Action.ROLL_BACK:
            taken = action  # may be `stop`
        is_worse = taken.severity > state.logged
        is_always_logged = taken in (Action.ROLL_BACK, Action.STOP)
        if not (is_worse or state.times.bit_count() == 1 or is_always_logged):
            return ""
        state.logged = taken.severity
        advice = f" {finding.advice}" if state.times == 1 else ""
        seen = f" Tripped {state.times} times so far." if state.times > 1 else ""
        return f"step {self._state.step}, {taken}, {finding.guard}: {finding.reason}.{advice}{seen}"

    def _diagnosis(self, findings: Sequence[GuardFinding]) -> str:
        """Return the message for a stop: its reasons, the counts of the run, and advice."""
        severest = sorted(findings, key=lambda finding: -finding.action.severity)
        state = self._state
        lines = [f"Training stops at step {state.step}."]
        lines += [f"- {finding.guard}: {finding.reason}." for finding in severest]
        lines.append(
            f"So far: {state.updates} updates, {state.skipped} skipped,"
            f" {state.roll_backs} roll-backs, learning rate scaled by {state.scale:g}."
        )
        if severest[0].action is not Action.STOP:
            lines.append(f"The last {state.recent} roll-backs did not help.")
        lines.append("Changes to make, the likeliest cause first:")
        advice = dict.fromkeys(finding.advice for finding in severest)
        return "\n".join([*lines, *(f"{number}. {each}" for number, each in enumerate(advice, 1))])

    def choose_snapshot(self, steps: Iterable[int]) -> int | None:
        """Choose the snapshot to restore on a roll-back.

        A snapshot qualifies if its weights were used to sample a batch in which no guard found the
        weights unhealthy. Weights that were restored in the last 100 steps are skipped if other
        snapshots qualify, since training from them failed again.

        Args:
            steps: Optimizer steps after which a snapshot was taken; 0 is the snapshot before the
                first step.

        Returns:
            The step of the latest snapshot that qualifies. None means that there is no such
            snapshot, so the trainer must stop.
        """
        state = self._state
        healthy = sorted(set(steps) & set(state.healthy))
        if state.returned is not None and state.step - state.returned[1] <= MEMORY:
            # A snapshot taken at the step of the roll-back has the same weights.
            while len(healthy) > 1 and healthy[-1] in state.returned:
                healthy.pop()
        if not healthy:
            return None
        state.returned = (healthy[-1], state.step)
        state.healthy = [step for step in state.healthy if step <= healthy[-1]]
        return healthy[-1]

    @property
    def learning_rate_scale(self) -> float:
        """The current factor on the scheduled learning rate, which a resumed run keeps."""
        return self._state.scale

    @property
    def healthy_steps(self) -> list[int]:
        """The latest steps after which the weights were healthy, at most `REMEMBERED` of them."""
        return list(self._state.healthy)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the guards after the last `observe`.

        Metric names are defined in `toolgym.runs.metrics`.
        """
        state = self._state
        return {
            "guard_severity": float(state.last.severity),
            "updates": float(state.updates),
            "skipped_updates": float(state.skipped),
            "roll_backs": float(state.roll_backs),
            "learning_rate_scale": state.scale,
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint, in JSON types."""
        return self._state.model_dump(mode="json")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`."""
        self._state = GuardsState.model_validate(state)


def rollback_message(step: int, place: int) -> str:
    """Return the log line for a roll-back to the weights after step `place`."""
    return (
        f"step {step}: weights and optimizer are restored from step {place}. The step count, the"
        " task order and random numbers continue, so the batch that led to this is not drawn again."
    )


def no_snapshot_message(step: int, reasons: Sequence[str], cure: str) -> str:
    """Return the message that reports a stop because there is no healthy snapshot to restore.

    Args:
        step: The optimizer step.
        reasons: Reasons for the decision.
        cure: Advice on the settings of the trainer.
    """
    findings = "\n".join(f"- {reason}." for reason in reasons)
    return (
        f"Training stops at step {step}: there is no healthy checkpoint to roll back to."
        f"\n{findings}\n{cure}"
    )
