"""`Guards`: decisions on each optimizer step, made from its metrics.

    every step   rollouts -> loss and gradient -> observe -> the optimizer moves, or does not

`Guards.observe` is called once for each optimizer step, when the gradient is known and before the
optimizer moves, so that whatever it decides can still be done exactly. The metrics of the rollouts
describe the weights before the update. Metrics that a step does not have (a second update from the
same rollouts has no new validity) are left out of the dict, never repeated; those of an evaluation
on held-out tasks are in the dict of the step that follows it.

Only decisions are made here. The trainer carries them out: it makes the update if
`Decision.update`, multiplies its learning rate by `learning_rate_scale`, restores the snapshot that
`choose_snapshot` names when told to roll back, and raises or returns with `diagnosis` when told to
stop. It takes a snapshot before the first step, and others as it likes. The guards, with what each
does at its first, second and third trip, are in `checks.GUARDS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from adapters.training.guards.checks import GUARDS, RunHistory, has_rollouts
from adapters.training.guards.config import Action, GuardConfig, GuardName

CALM: Final = 10  # steps without a trip after which a guard's actions begin anew
MEMORY: Final = 100  # steps or updates after which roll-backs are forgotten
LOWER_BY: Final = 0.5
LOWEST_SCALE: Final = 1 / 16  # of the learning rate; smaller updates teach nothing
REMEMBERED: Final = 1000  # steps whose weights are remembered as healthy


@dataclass(frozen=True)
class GuardFinding:
    """The finding of one guard at a step, and the action that it asks for."""

    guard: GuardName
    action: Action
    reason: str
    advice: str


@dataclass(frozen=True)
class Decision:
    """The joint decision of all guards on a step.

    Attributes:
        action: The severest that any guard asks for.
        findings: The guards that ask for an action, in the order of `GUARDS`.
        update: Whether to make the step's update.
        learning_rate_scale: The factor on the trainer's own learning rate from now on.
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
        """`guard: reason` of each finding."""
        return tuple(f"{finding.guard}: {finding.reason}" for finding in self.findings)


@dataclass
class GuardState:
    """The state of one guard.

    Attributes:
        taken: Actions taken since it was calm.
        waited: Steps since the last of them.
        calm: Steps in a row at which it did not trip.
        times: Actions that it asked for in the whole run.
        logged: Severity of the last that was logged.
    """

    taken: int = 0
    waited: int = 0
    calm: int = 0
    times: int = 0
    logged: int = 0

    def next_action(self, actions: Sequence[Action], wait: int, trips: bool) -> Action | None:
        """Count a step, and return the action that is due; None where there is none."""
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
        self._returned: tuple[int, int] | None = None  # to which snapshot, and when
        self._step = 0
        self._scale = 1.0
        self._counts = {"updates": 0, "skipped": 0, "roll_backs": 0, "recent": 0, "calm": 0}
        self._last = Action.OK

    def observe(self, step: int, metrics: Mapping[str, Any]) -> Decision:
        """Decide over the update that makes the weights of `step` out of those of `step - 1`.

        Args:
            step: The optimizer step, from 1; it goes on counting after a roll-back.
            metrics: Raw values, named as in `toolgym.runs.metrics`: a nan loss must be seen.
                Of all processes together, so that each of them decides the same.
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
        asked = {finding.action for finding in findings}
        if not teaches:
            asked.add(Action.SKIP)  # a gradient of 0 would still move weights by momentum
        action = max(asked, key=lambda each: each.severity, default=Action.OK)
        if action is Action.ROLL_BACK and self._counts["recent"] >= self._config.max_roll_backs:
            action = Action.STOP
        update = asked.isdisjoint({Action.SKIP, Action.ROLL_BACK, Action.STOP})
        lowers = action is Action.ROLL_BACK or Action.LOWER_LR in asked
        if self._config.only_warn:
            action = min(action, Action.WARN, key=lambda each: each.severity)
            action, update, lowers = action if findings else Action.OK, True, False
        if lowers and action is not Action.STOP:
            self._scale = max(LOWEST_SCALE, LOWER_BY * self._scale)
            for state in self._states.values():
                # What was done for one guard may help the others. After a roll-back they only see
                # what is new.
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
        """The log line of a finding; empty where it was logged before.

        Findings are logged the first time, the second, the fourth, the eighth and so on, and
        whenever their action is severer than before; roll-backs and stops always.
        """
        state = self._states[finding.guard]
        state.times += 1
        done = min(finding.action, action, key=lambda each: each.severity)
        if finding.action is Action.ROLL_BACK:
            done = action  # which may be a stop instead
        is_news = done.severity > state.logged
        if not (is_news or state.times.bit_count() == 1 or done in (Action.ROLL_BACK, Action.STOP)):
            return ""
        state.logged = done.severity
        advice = f" {finding.advice}" if state.times == 1 else ""
        seen = f" Seen {state.times} times so far." if state.times > 1 else ""
        return f"step {self._step}, {done}, {finding.guard}: {finding.reason}.{advice}{seen}"

    def _diagnosis(self, findings: Sequence[GuardFinding]) -> str:
        """The text of a stop: its reasons, the run's history, and advice."""
        severest = sorted(findings, key=lambda finding: -finding.action.severity)
        counts = self._counts
        lines = [f"Training stops at step {self._step}."]
        lines += [f"- {finding.guard}: {finding.reason}." for finding in severest]
        lines.append(
            f"Until then: {counts['updates']} updates, {counts['skipped']} left out,"
            f" {counts['roll_backs']} roll-backs, learning rate at {self._scale:g} of its own."
        )
        if severest[0].action is not Action.STOP:
            lines.append(f"It was rolled back {counts['recent']} times lately, which did not help.")
        lines.append("What to change, the likeliest cause first:")
        advice = dict.fromkeys(finding.advice for finding in severest)
        return "\n".join([*lines, *(f"{number}. {each}" for number, each in enumerate(advice, 1))])

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
        if self._returned is not None and self._step - self._returned[1] <= MEMORY:
            # A snapshot taken when they had just been returned to holds the same weights.
            while len(healthy) > 1 and healthy[-1] in self._returned:
                healthy.pop()
        if not healthy:
            return None
        self._returned = (healthy[-1], self._step)
        self._healthy_steps = [step for step in self._healthy_steps if step <= healthy[-1]]
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
        return {
            "guard_severity": float(self._last.severity),
            "updates": float(self._counts["updates"]),
            "skipped_updates": float(self._counts["skipped"]),
            "roll_backs": float(self._counts["roll_backs"]),
            "learning_rate_scale": self._scale,
        }

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, as JSON can hold it."""
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
        """Restore such a state, as if the run had never stopped."""
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
        f"step {step}: weights, optimizer and learning-rate schedule are again those after step"
        f" {place}. The count of steps, the order of tasks and all random numbers go on, so that"
        " the batch that led here is not drawn again."
    )


def no_snapshot_message(step: int, reasons: Sequence[str], cure: str) -> str:
    """The diagnosis of a run that ends for want of a healthy snapshot to roll back to.

    Args:
        reasons: Those of the decision.
        cure: What to change in the trainer's settings.
    """
    seen = "\n".join(f"- {reason}." for reason in reasons)
    return (
        f"Training stops at step {step}: the weights should go back to healthy ones, and there are"
        f" none.\n{seen}\n{cure}"
    )
