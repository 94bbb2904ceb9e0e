"""Guards: from the metrics of a step, whether to make its update, and what else to do.

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
does at its first, second and third trip, stands in `guard_checks.GUARDS`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from adapters.training.guards.advice import advice, seen_by
from adapters.training.guards.checks import GUARDS, Guard, tempered
from adapters.training.guards.config import Action, GuardConfig
from adapters.training.guards.decision import Decision, Finding, Telling
from adapters.training.guards.history import History, Look
from adapters.training.guards.setup import Setup

_SOUND: Final = 1000  # steps of which it is remembered whether their weights were sound


class Guards:
    """All guards of one run.

    Args:
        config: Thresholds and actions.
        setup: What is known of the trainer's settings, for the advice.

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
        self._sound: deque[int] = deque([0], maxlen=_SOUND)
        self._returned: tuple[int, int] | None = None  # to which snapshot, and when
        self._step = 0
        self._scale = 1.0
        self._roll_backs = 0
        self._recent = 0  # roll-backs that are not forgotten
        self._healthy = 0  # updates since then with nothing worse than a warning
        self._last = Action.OK
        self._telling = Telling(self._config.memory)

    def observe(self, step: int, metrics: Mapping[str, Any]) -> Decision:
        """Decide over the update that makes the weights of `step` out of those of `step - 1`.

        Args:
            step: The optimizer step, from 1; it goes on counting after a roll-back.
            metrics: By the names of `metric_names`, as they are: a loss that is nan must be seen.
                Of all processes together, so that each of them decides the same.
        """
        self._step = step
        look = self._history.look(metrics)
        findings = self._findings(step, look)
        self._judge_weights(step, look)
        action = max((f.action for f in findings), key=lambda a: a.severity, default=Action.OK)
        if action is Action.ROLL_BACK and self._recent >= self._config.max_roll_backs:
            action = Action.STOP
        update = not any(finding.leaves_out for finding in findings)
        lowers = any(finding.action is Action.LOWER_LR for finding in findings)
        if self._config.only_warn:
            action, update = min(action, Action.WARN, key=lambda a: a.severity), True
            lowers = False
        self._carry(action, lowers, update)
        told = self._telling.lines(step, findings, action)
        diagnosis = self._diagnosis(step, findings) if action is Action.STOP else ""
        return Decision(step, action, tuple(findings), update, self._scale, told, diagnosis)

    def _findings(self, step: int, look: Look) -> list[Finding]:
        """What all guards have to say; the last is told what the others leave of the step."""
        *others, last = GUARDS
        found = [finding for guard in others if (finding := self._ask(guard, look, step))]
        held = [f.guard for f in found if f.leaves_out and not self._config.only_warn]
        still = self._ask(last, self._history.stand_still(look, held), step)
        return [*found, still] if still else found

    def _ask(self, guard: Guard, look: Look, step: int) -> Finding | None:
        """What one guard has to say; it waits, trips, and grows stricter here."""
        actions = self._config.actions.get(guard.name, guard.actions)
        if not actions or any(key not in look.numbers for key in guard.needs):
            return None
        reason = guard.check(look, self._config)
        streak = self._streaks.get(guard.name, 0) + 1 if reason is not None else 0
        patience = guard.steps(self._config)
        self._streaks[guard.name] = streak
        if reason is None and guard.unbroken:
            self._trips.pop(guard.name, None)
        if reason is None or streak < patience:
            return None
        since = step - self._config.memory - patience * len(actions)
        trips = [trip for trip in self._trips.get(guard.name, []) if trip > since]
        action = tempered(guard, actions[min(len(trips), len(actions) - 1)], look, self._config)
        self._trips[guard.name] = [*trips, step][-len(actions) :]
        self._streaks[guard.name] = 0
        lasted = f" ({patience} steps in a row)" if patience > 1 and not guard.unbroken else ""
        cures = advice(guard.name, self._setup, seen_by(guard.name, look, self._config))
        return Finding(guard.name, action, reason + lasted, cures, guard.drops_update)

    def _judge_weights(self, step: int, look: Look) -> None:
        """Remember whether the weights that the step began with are worth returning to.

        A guard that was switched off has no say in it: under one of drift, say, no weights would
        ever be worth it again.
        """
        off = {name for name, actions in self._config.actions.items() if not actions}
        spoilers = [guard for guard in GUARDS if guard.spoils and guard.name not in off]
        asked = any(guard.needs and set(guard.needs) <= look.numbers.keys() for guard in spoilers)
        is_spoilt = any(
            set(guard.needs) <= look.numbers.keys() and guard.check(look, self._config)
            for guard in spoilers
        )
        if asked and not is_spoilt and step - 1 not in self._sound:
            self._sound.append(step - 1)

    def _carry(self, action: Action, lowers: bool, update: bool) -> None:
        """Take note of what the trainer is about to do."""
        self._last = action
        self._history.note(update)
        self._healthy += update and action.severity <= Action.WARN.severity
        if self._healthy >= self._config.memory:
            self._recent = self._healthy = 0
        if action is Action.ROLL_BACK:
            self._roll_backs += 1
            self._recent, self._healthy = self._recent + 1, 0
            self._history.forget_batch()
        if action is Action.ROLL_BACK or (lowers and action is not Action.STOP):
            lowered = self._scale * self._config.lower_by
            self._scale = max(self._config.lowest_scale, lowered)

    def choose_snapshot(self, steps: Iterable[int]) -> int | None:
        """Which snapshot to restore on a roll-back.

        Args:
            steps: The optimizer steps after which a snapshot was taken, 0 for the one before the
                first step.

        Returns:
            The latest whose weights sampled a batch in which no guard saw harm. Weights that were
            returned to lately are passed over, since they led here again; unless there are no
            others. None where there is none: then the trainer has to stop.
        """
        sound = sorted(set(steps) & set(self._sound))
        if self._returned is not None and self._step - self._returned[1] <= self._config.memory:
            # A snapshot taken when they had just been returned to holds the same weights.
            while len(sound) > 1 and sound[-1] in self._returned:
                sound.pop()
        if not sound:
            return None
        self._returned = (sound[-1], self._step)
        kept = (step for step in self._sound if step <= sound[-1])
        self._sound = deque(kept, maxlen=_SOUND)
        return sound[-1]

    @property
    def learning_rate_scale(self) -> float:
        """What the trainer's learning rate is multiplied by, a resumed trainer's too."""
        return self._scale

    @property
    def sound_steps(self) -> list[int]:
        """The steps after which the weights were worth returning to, as far as is remembered."""
        return list(self._sound)

    def metrics(self) -> dict[str, float]:
        """The guards' own numbers after the last `observe`, by the names of `metric_names`."""
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

    def _diagnosis(self, step: int, findings: Iterable[Finding]) -> str:
        """Why the run stops, what led there, and what to change."""
        severest = sorted(findings, key=lambda finding: -finding.action.severity)
        history = self._history
        told = [f"Training stops at step {step}."]
        told += [f"- {finding.guard}: {finding.reason}." for finding in severest]
        told.append(
            f"Until then: {history.updates} updates, {history.skipped} left out,"
            f" {self._roll_backs} roll-backs, learning rate at {self._scale:g} of its own."
        )
        if all(finding.action is not Action.STOP for finding in severest):
            told.append(
                f"It would be rolled back once more, but that has not helped {self._recent} times."
            )
        if history.collapsed:
            told.append(
                f"{history.collapsed} of {history.measured} updates"
                f" ({history.collapsed / history.measured:.1%}) were at once followed by a collapse"
                " of validity."
            )
        cures = dict.fromkeys(line for finding in severest for line in finding.advice)
        if cures:
            told.append("What to change, the likeliest first:")
            told += [f"{number}. {line}" for number, line in enumerate(cures, 1)]
        return "\n".join(told)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps, as JSON can hold it."""
        return {
            "history": self._history.state_dict(),
            "streaks": dict(self._streaks),
            "trips": {name: list(steps) for name, steps in self._trips.items()},
            "sound": list(self._sound),
            "returned": list(self._returned) if self._returned else None,
            "step": self._step,
            "scale": self._scale,
            "roll_backs": self._roll_backs,
            "recent": self._recent,
            "healthy": self._healthy,
            "last": self._last.value,
            "told": self._telling.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state, as if the run had never stopped."""
        self._history.load_state_dict(state["history"])
        self._streaks = dict(state["streaks"])
        self._trips = {name: list(steps) for name, steps in state["trips"].items()}
        self._sound = deque(state["sound"], maxlen=_SOUND)
        returned = state["returned"]
        self._returned = (returned[0], returned[1]) if returned else None
        self._step, self._scale = state["step"], state["scale"]
        self._roll_backs, self._last = state["roll_backs"], Action(state["last"])
        self._recent, self._healthy = state["recent"], state["healthy"]
        self._telling.load_state_dict(state["told"])
