"""`Guards`: decisions on each optimizer step, made from its metrics.

    every step   rollouts -> loss and gradient -> observe -> the optimizer moves, or does not

`Guards.observe` is called once for each optimizer step, when the gradient is known and before the
optimizer moves, so that whatever it decides can still be done exactly. The metrics of the rollouts
describe the weights before the update; so those of the next step tell what this update has done.
Metrics that a step does not have (a second update from the same rollouts has no new validity) are
left out of the dict, never repeated.

Only decisions are made here. The trainer carries them out: it makes the update if
`Decision.update`, multiplies its learning rate by `learning_rate_scale`, restores the snapshot that
`choose_snapshot` names when told to roll back, and raises or returns with `diagnosis` when told to
stop. It takes a snapshot before the first step, and others as it likes. Each guard, with what it
does at its first, second and third trip, stands in `checks.GUARDS`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adapters.training.guards.advice import advice, hint_of
from adapters.training.guards.checks import GUARDS, Guard, adjusted_action
from adapters.training.guards.config import Action, GuardConfig, GuardName, Setup
from adapters.training.guards.history import History, Observation

# The decision at a step, and its lines in the user's log, the same for both trainers.
#
# A finding that recurs is logged the first time, the second, the fourth, the eighth and so on, with
# its count: logged at every step it hides all else, and logged once it is forgotten. A roll-back
# and the end of a run are logged whenever they happen.


@dataclass(frozen=True)
class GuardFinding:
    """The finding of one guard that tripped.

    Attributes:
        action: The action that it asks for.
        reason: The observation that tripped it, with the numbers.
        advice: Settings to change, the likeliest cure first.
        drops_update: The step's update must not be made, whatever the action.
    """

    guard: GuardName
    action: Action
    reason: str
    advice: tuple[str, ...]
    drops_update: bool

    @property
    def leaves_out(self) -> bool:
        """Whether the step's update is not made."""
        makes = (Action.OK, Action.WARN, Action.LOWER_LR)
        return self.drops_update or self.action not in makes


@dataclass(frozen=True)
class Decision:
    """The joint decision of all guards on a step.

    Attributes:
        action: The severest that any guard asks for.
        findings: The guards that tripped, in the order of `GUARDS`.
        update: Whether to make the step's update.
        learning_rate_scale: What the trainer's own learning rate is multiplied by from now on.
        log_lines: Lines for the user's log.
        diagnosis: Why to stop and what to change, for the user; empty unless the action is `stop`.
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
        """`guard: reason` of each guard that tripped."""
        return tuple(f"{finding.guard}: {finding.reason}" for finding in self.findings)

    @property
    def advice(self) -> tuple[str, ...]:
        """The advice of all findings, of the severest first, each sentence once."""
        order = sorted(self.findings, key=lambda finding: -finding.action.severity)
        return tuple(dict.fromkeys(line for finding in order for line in finding.advice))


@dataclass
class _ReportState:
    """The log state of a guard: count of its trips, step and severity of its last line."""

    times: int = 0
    step: int = 0
    severity: int = 0


class FindingReporter:
    """A log filter for recurring findings, which also words their lines.

    Args:
        memory: Steps after which a finding is logged again in any case.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._logged: dict[str, _ReportState] = {}

    def lines(self, step: int, findings: Sequence[GuardFinding], action: Action) -> tuple[str, ...]:
        """The log lines of a step.

        Args:
            findings: The guards that tripped.
            action: The action taken: less than a finding asks for where guards only warn, and more
                where it would have been rolled back once too often.
        """
        return tuple(line for each in findings if (line := self._line(step, each, action)))

    def _line(self, step: int, finding: GuardFinding, action: Action) -> str:
        """The log line of a finding; empty where it is not due."""
        asked = finding.action
        does = (
            action
            if asked is Action.ROLL_BACK
            else min(asked, action, key=lambda each: each.severity)
        )
        logged = self._logged.setdefault(finding.guard, _ReportState())
        logged.times += 1
        is_news = logged.times == 1 or does.severity > logged.severity
        is_due = logged.times.bit_count() == 1 or step - logged.step >= self._memory
        if not (is_news or is_due or does in (Action.ROLL_BACK, Action.STOP)):
            return ""
        logged.step, logged.severity = step, does.severity
        cures = finding.advice if is_news else finding.advice[:1]
        often = f" Seen {logged.times} times so far." if logged.times > 1 else ""
        message = " ".join((f"{finding.reason}.", *cures))
        return f"step {step}, {does.value}, {finding.guard}: {message}{often}"

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, as JSON can hold it."""
        return {name: [k.times, k.step, k.severity] for name, k in self._logged.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore such a state."""
        self._logged = {name: _ReportState(*values) for name, values in state.items()}


def rollback_message(step: int, place: int) -> str:
    """The log line of a roll-back.

    Args:
        place: After which step the weights were that are restored.
    """
    return (
        f"step {step}: weights, optimizer and learning-rate schedule are again those after step"
        f" {place}. The count of steps, the order of tasks and all random numbers go on, so that"
        " the batch that led here is not drawn again."
    )


def no_snapshot_message(step: int, reasons: Sequence[str], cure: str) -> str:
    """The diagnosis of a run that ends for want of a healthy snapshot to roll back to.

    Args:
        reasons: Of the decision.
        cure: What to change in the trainer's settings.
    """
    seen = "\n".join(f"- {reason}." for reason in reasons)
    return (
        f"Training stops at step {step}: the weights should go back to healthy ones, and there are"
        f" none.\n{seen}\n{cure}"
    )


_REMEMBERED: Final = 1000  # steps whose weights are remembered as healthy


class Guards:
    """All guards of one run.

    >>> guards = Guards()
    >>> guards.observe(1, {"reward": 0.2, "loss": 0.1, "grad_norm": 1.0}).action.value
    'ok'
    >>> decision = guards.observe(2, {"loss": float("nan"), "grad_norm": float("nan")})
    >>> decision.action.value, decision.update, decision.reasons
    ('skip', False, ('non_finite: loss and grad_norm not finite',))
    """

    def __init__(self, config: GuardConfig | None = None, setup: Setup | None = None) -> None:
        self._config, self._setup = config or GuardConfig(), setup or Setup()
        self._history = History(self._config)
        self._streaks: dict[str, int] = {}
        self._trips: dict[str, list[int]] = {}
        self._healthy_steps: deque[int] = deque([0], maxlen=_REMEMBERED)
        self._returned: tuple[int, int] | None = None  # to which snapshot, and when
        self._step = 0
        self._scale = 1.0
        self._roll_backs = 0
        self._recent = 0  # roll-backs that are not forgotten
        self._calm_updates = 0  # updates since then with nothing worse than a warning
        self._last = Action.OK
        self._reporter = FindingReporter(self._config.memory)

    def observe(self, step: int, metrics: Mapping[str, Any]) -> Decision:
        """Decide over the update that makes the weights of `step` out of those of `step - 1`.

        Args:
            step: The optimizer step, from 1; it goes on counting after a roll-back.
            metrics: Raw values, named as in `toolgym.runs.metrics`: a nan loss must be seen.
                Of all processes together, so that each of them decides the same.
        """
        self._step = step
        observation = self._history.observe(metrics)
        findings = self._findings(step, observation)
        self._judge_weights(step, observation)
        action = max((f.action for f in findings), key=lambda a: a.severity, default=Action.OK)
        if action is Action.ROLL_BACK and self._recent >= self._config.max_roll_backs:
            action = Action.STOP
        update = not any(finding.leaves_out for finding in findings)
        lowers = any(finding.action is Action.LOWER_LR for finding in findings)
        if self._config.only_warn:
            action, update = min(action, Action.WARN, key=lambda a: a.severity), True
            lowers = False
        self._carry(action, lowers, update)
        log_lines = self._reporter.lines(step, findings, action)
        diagnosis = self._diagnosis(step, findings) if action is Action.STOP else ""
        return Decision(step, action, tuple(findings), update, self._scale, log_lines, diagnosis)

    def _findings(self, step: int, observation: Observation) -> list[GuardFinding]:
        """The findings of all guards; the last one depends on what the others leave out."""
        *others, last = GUARDS
        findings = [finding for guard in others if (finding := self._ask(guard, observation, step))]
        held = [f.guard for f in findings if f.leaves_out and not self._config.only_warn]
        idle = self._ask(last, self._history.with_evidence(observation, held), step)
        return [*findings, idle] if idle else findings

    def _ask(self, guard: Guard, observation: Observation, step: int) -> GuardFinding | None:
        """The finding of one guard, if it trips; patience and escalation are counted here."""
        actions = self._config.actions.get(guard.name, guard.actions)
        if not actions or any(key not in observation.metrics for key in guard.needs):
            return None
        reason = guard.check(observation, self._config)
        streak = self._streaks.get(guard.name, 0) + 1 if reason is not None else 0
        patience = guard.steps(self._config)
        self._streaks[guard.name] = streak
        if reason is None and guard.unbroken:
            self._trips.pop(guard.name, None)
        if reason is None or streak < patience:
            return None
        since = step - self._config.memory - patience * len(actions)
        trips = [trip for trip in self._trips.get(guard.name, []) if trip > since]
        action = adjusted_action(
            guard, actions[min(len(trips), len(actions) - 1)], observation, self._config
        )
        self._trips[guard.name] = [*trips, step][-len(actions) :]
        self._streaks[guard.name] = 0
        lasted = f" ({patience} steps in a row)" if patience > 1 and not guard.unbroken else ""
        cures = advice(guard.name, self._setup, hint_of(guard.name, observation, self._config))
        return GuardFinding(guard.name, action, reason + lasted, cures, guard.drops_update)

    def _judge_weights(self, step: int, observation: Observation) -> None:
        """Record whether the weights that the step began with are healthy.

        A guard that was switched off has no say in it: under one of drift, say, no weights would
        ever be worth it again.
        """
        off = {name for name, actions in self._config.actions.items() if not actions}
        judges = [guard for guard in GUARDS if guard.marks_unhealthy and guard.name not in off]
        asked = any(
            guard.needs and set(guard.needs) <= observation.metrics.keys() for guard in judges
        )
        is_unhealthy = any(
            set(guard.needs) <= observation.metrics.keys()
            and guard.check(observation, self._config)
            for guard in judges
        )
        if asked and not is_unhealthy and step - 1 not in self._healthy_steps:
            self._healthy_steps.append(step - 1)

    def _carry(self, action: Action, lowers: bool, update: bool) -> None:
        """Record the action that the trainer is about to take."""
        self._last = action
        self._history.note(update)
        self._calm_updates += update and action.severity <= Action.WARN.severity
        if self._calm_updates >= self._config.memory:
            self._recent = self._calm_updates = 0
        if action is Action.ROLL_BACK:
            self._roll_backs += 1
            self._recent, self._calm_updates = self._recent + 1, 0
            self._history.forget_batch()
        if action is Action.ROLL_BACK or (lowers and action is not Action.STOP):
            lowered = self._scale * self._config.lower_by
            self._scale = max(self._config.lowest_scale, lowered)

    def choose_snapshot(self, steps: Iterable[int]) -> int | None:
        """The snapshot to restore on a roll-back, by its step.

        Args:
            steps: The optimizer steps after which a snapshot was taken, 0 for the one before the
                first step.

        Returns:
            The latest whose weights sampled a batch in which no guard saw harm. Weights that were
            returned to lately are passed over, since they led here again; unless there are no
            others. None where there is none: then the trainer has to stop.
        """
        healthy = sorted(set(steps) & set(self._healthy_steps))
        if self._returned is not None and self._step - self._returned[1] <= self._config.memory:
            # A snapshot taken when they had just been returned to holds the same weights.
            while len(healthy) > 1 and healthy[-1] in self._returned:
                healthy.pop()
        if not healthy:
            return None
        self._returned = (healthy[-1], self._step)
        earlier = (step for step in self._healthy_steps if step <= healthy[-1])
        self._healthy_steps = deque(earlier, maxlen=_REMEMBERED)
        return healthy[-1]

    @property
    def learning_rate_scale(self) -> float:
        """The factor on the trainer's learning rate, a resumed trainer's too."""
        return self._scale

    @property
    def healthy_steps(self) -> list[int]:
        """The steps after which the weights were healthy, as far as is remembered."""
        return list(self._healthy_steps)

    def metrics(self) -> dict[str, float]:
        """The guards' own metrics after the last `observe`, named as in `toolgym.runs.metrics`."""
        history = self._history
        numbers = {
            "guard_severity": float(self._last.severity),
            "updates": float(history.updates),
            "skipped_updates": float(history.skipped),
            "roll_backs": float(self._roll_backs),
            "learning_rate_scale": self._scale,
        }
        if history.measured:
            numbers["collapse_share"] = history.collapsed / history.measured
        return numbers

    def _diagnosis(self, step: int, findings: Iterable[GuardFinding]) -> str:
        """The text of a stop: its reasons, the run's history, and advice."""
        severest = sorted(findings, key=lambda finding: -finding.action.severity)
        history = self._history
        lines = [f"Training stops at step {step}."]
        lines += [f"- {finding.guard}: {finding.reason}." for finding in severest]
        lines.append(
            f"Until then: {history.updates} updates, {history.skipped} left out,"
            f" {self._roll_backs} roll-backs, learning rate at {self._scale:g} of its own."
        )
        if all(finding.action is not Action.STOP for finding in severest):
            lines.append(
                f"It would be rolled back once more, but that has not helped {self._recent} times."
            )
        if history.collapsed:
            lines.append(
                f"{history.collapsed} of {history.measured} updates"
                f" ({history.collapsed / history.measured:.1%}) were at once followed by a collapse"
                " of validity."
            )
        cures = dict.fromkeys(line for finding in severest for line in finding.advice)
        if cures:
            lines.append("What to change, the likeliest first:")
            lines += [f"{number}. {line}" for number, line in enumerate(cures, 1)]
        return "\n".join(lines)

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, as JSON can hold it."""
        return {
            "history": self._history.state_dict(),
            "streaks": dict(self._streaks),
            "trips": {name: list(steps) for name, steps in self._trips.items()},
            "sound": list(self._healthy_steps),
            "returned": list(self._returned) if self._returned else None,
            "step": self._step,
            "scale": self._scale,
            "roll_backs": self._roll_backs,
            "recent": self._recent,
            "healthy": self._calm_updates,
            "last": self._last.value,
            "told": self._reporter.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore such a state, as if the run had never stopped."""
        self._history.load_state_dict(state["history"])
        self._streaks = dict(state["streaks"])
        self._trips = {name: list(steps) for name, steps in state["trips"].items()}
        self._healthy_steps = deque(state["sound"], maxlen=_REMEMBERED)
        returned = state["returned"]
        self._returned = (returned[0], returned[1]) if returned else None
        self._step, self._scale = state["step"], state["scale"]
        self._roll_backs, self._last = state["roll_backs"], Action(state["last"])
        self._recent, self._calm_updates = state["recent"], state["healthy"]
        self._reporter.load_state_dict(state["told"])
