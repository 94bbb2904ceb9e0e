"""What the guards decide at a step, and what of it the user is told.

Both trainers carry decisions out in their own way, and tell of them in these words. What is found
again and again is told the first time, the second, the fourth, the eighth and so on, with how often
it was seen: said at every step it hides all else, and said once it is forgotten. A return to
earlier weights and the end of a run are told whenever they happen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.training.guards.config import Action, GuardName


@dataclass(frozen=True)
class Finding:
    """One guard that tripped.

    Attributes:
        guard: Its name.
        action: What it asks for.
        reason: What was seen, with the numbers.
        advice: What to change, the likeliest cure first.
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
    """What to do at a step.

    Attributes:
        step: The step.
        action: The severest that any guard asks for.
        findings: The guards that tripped, in the order of `GUARDS`.
        update: Whether to make the step's update.
        learning_rate_scale: What the trainer's own learning rate is multiplied by from now on.
        told: Lines for the user's log.
        diagnosis: Why to stop and what to change, for the user; empty unless the action is `stop`.
    """

    step: int
    action: Action
    findings: tuple[Finding, ...]
    update: bool
    learning_rate_scale: float
    told: tuple[str, ...] = ()
    diagnosis: str = ""

    @property
    def reasons(self) -> tuple[str, ...]:
        """`guard: what was seen`, of each guard that tripped."""
        return tuple(f"{finding.guard}: {finding.reason}" for finding in self.findings)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to change, of the severest finding first, each sentence once."""
        order = sorted(self.findings, key=lambda finding: -finding.action.severity)
        return tuple(dict.fromkeys(line for finding in order for line in finding.advice))


@dataclass
class _Known:
    """What was told of a guard: how often it tripped, and when and how it was told last."""

    times: int = 0
    step: int = 0
    severity: int = 0


class Telling:
    """Chooses what is told, and puts it into words.

    Args:
        memory: Steps after which a finding is told again in any case.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._known: dict[str, _Known] = {}

    def lines(self, step: int, findings: Sequence[Finding], action: Action) -> tuple[str, ...]:
        """The lines of a step.

        Args:
            step: The step.
            findings: The guards that tripped.
            action: What is done: less than a finding asks for where guards only warn, and more
                where it would have been rolled back once too often.
        """
        return tuple(line for each in findings if (line := self._line(step, each, action)))

    def _line(self, step: int, finding: Finding, action: Action) -> str:
        """What is told of a finding; empty where nothing is."""
        asked = finding.action
        does = action if asked is Action.ROLL_BACK else min(asked, action, key=_severity)
        known = self._known.setdefault(finding.guard, _Known())
        known.times += 1
        is_news = known.times == 1 or does.severity > known.severity
        is_due = known.times.bit_count() == 1 or step - known.step >= self._memory
        if not (is_news or is_due or does in (Action.ROLL_BACK, Action.STOP)):
            return ""
        known.step, known.severity = step, does.severity
        cures = finding.advice if is_news else finding.advice[:1]
        often = f" Seen {known.times} times so far." if known.times > 1 else ""
        told = " ".join((f"{finding.reason}.", *cures))
        return f"step {step}, {does.value}, {finding.guard}: {told}{often}"

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps, as JSON can hold it."""
        return {name: [k.times, k.step, k.severity] for name, k in self._known.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""
        self._known = {name: _Known(*known) for name, known in state.items()}


def _severity(action: Action) -> int:
    return action.severity


def returned(step: int, place: int) -> str:
    """What the user is told of a roll-back.

    Args:
        step: At which it is made.
        place: After which step the weights were that are restored.
    """
    return (
        f"step {step}: weights, optimizer and learning-rate schedule are again those after step"
        f" {place}. The count of steps, the order of tasks and all random numbers go on, so that"
        " the batch that led here is not drawn again."
    )


def no_way_back(step: int, reasons: Sequence[str], cure: str) -> str:
    """Why a run ends whose guards ask for a return that cannot be made.

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
