"""Whether failures are the tasks' or the format's.

A reward of zero has two causes that look alike from a distance: the task is hard, or what the
policy writes is not understood. The records of episodes tell them apart: are calls bound, do
episodes end with an answer, and is who has found the result judged right?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord
from toolgym.rewards import RewardConfig

_WINDOW: Final = 256  # episodes over which the figures are remembered
_ENOUGH: Final = 8  # episodes that have found the result, before anything is said of them


class FormatMismatch(ConfigurationError):
    """The success rates say more of the format than of the tasks; the message says what to do."""


@dataclass(frozen=True)
class Trust:
    """When success rates are believed.

    Attributes:
        episodes: Scored episodes that must have been observed; until then tasks are drawn evenly.
        validity: The least share of turns in which every call was bound.
        answered: The least share of episodes that ended with an answer.
        lost: The largest share of wrong answers among the episodes that had found the whole result:
            what was found and is still wrong was given in a form that is not understood.
    """

    episodes: int = 64
    validity: float = 0.8
    answered: float = 0.8
    lost: float = 0.5


class FormatFigures:
    """Running figures of the format; what is long ago fades."""

    def __init__(self) -> None:
        self.episodes = 0
        self._sums: dict[str, float] = {}
        self._errors: Counter[str] = Counter()

    def note(self, record: EpisodeRecord) -> None:
        """Add a scored episode."""
        self.episodes += 1
        found = record.answered and record.progress_bin >= RewardConfig.of(None).bins
        figures = {
            "episodes": 1,
            "answered": record.answered,
            "turns": len(record.turns),
            "valid": sum(bool(turn["valid"]) for turn in record.turns),
            "found": found,
            "lost": found and not record.correct,
        }
        for name, value in figures.items():
            self._sums[name] = self._sums.get(name, 0.0) * (1 - 1 / _WINDOW) + value
        self._errors.update(code for turn in record.turns for code in turn["errors"])

    def doubts(self, trust: Trust) -> list[str]:
        """Why success rates are not to be believed, each with the cure; empty if they are."""
        told = []
        share = self._share("valid", "turns")
        if share < trust.validity:
            codes = ", ".join(f"{n} {code}" for code, n in self._errors.most_common(3))
            told.append(
                f"only {share:.0%} of the turns hold calls that can be bound ({codes}): warm the"
                ' model up on demonstrations, or take parsing="lenient"'
            )
        share = self._share("answered", "episodes")
        if share < trust.answered:
            told.append(
                f"only {share:.0%} of the episodes end with an answer: allow more tokens and a"
                " larger step_limit, or warm the model up"
            )
        share = self._share("lost", "found")
        if share > trust.lost and self._sums["found"] >= _ENOUGH:
            told.append(
                f"{share:.0%} of the answers are judged wrong although the result had been found:"
                " read some of them, for their form is not understood"
            )
        return told

    def _share(self, part: str, whole: str) -> float:
        total = self._sums.get(whole, 0.0)
        return self._sums[part] / total if total else 0.0

    def state(self) -> dict[str, Any]:
        """The figures as plain data."""
        errors = dict(self._errors)
        return {"episodes": self.episodes, "sums": dict(self._sums), "errors": errors}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> FormatFigures:
        """The figures that `state` returned."""
        figures = cls()
        figures.episodes = int(state["episodes"])
        figures._sums = dict(state["sums"])
        figures._errors = Counter(state["errors"])
        return figures
