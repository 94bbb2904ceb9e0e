"""The guards' decision at a step, and its lines in the user's log.

Both trainers carry decisions out in their own way, and log them in these words. A finding that
recurs is logged the first time, the second, the fourth, the eighth and so on, with its count:
logged at every step it hides all else, and logged once it is forgotten. A roll-back and the end of
a run are logged whenever they happen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.training.guards.config import Action, GuardName


@dataclass(frozen=True)
class GuardFinding:
    """The finding of one guard that tripped.

    Attributes:
        guard: Its name.
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
        step: The step.
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
            step: The step.
            findings: The guards that tripped.
            action: The action taken: less than a finding asks for where guards only warn, and more
                where it would have been rolled back once too often.
        """
        return tuple(line for each in findings if (line := self._line(step, each, action)))

    def _line(self, step: int, finding: GuardFinding, action: Action) -> str:
        """The log line of a finding; empty where it is not due."""
        asked = finding.action
        does = action if asked is Action.ROLL_BACK else min(asked, action, key=_severity)
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


def _severity(action: Action) -> int:
    return action.severity


def rollback_message(step: int, place: int) -> str:
    """The log line of a roll-back.

    Args:
        step: At which it is made.
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
        step: At which it ends.
        reasons: Of the decision.
        cure: What to change in the trainer's settings.
    """
    seen = "\n".join(f"- {reason}." for reason in reasons)
    return (
        f"Training stops at step {step}: the weights should go back to healthy ones, and there are"
        f" none.\n{seen}\n{cure}"
    )
