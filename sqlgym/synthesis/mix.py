"""The options of a synthesis: how hard the tasks are, and in which language.

Shares of levels are only compared with each other, so they need not sum to one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sqlgym.hardness import Hardness
from sqlgym.synthesis.report import LEVELS
from toolgym.errors import ConfigurationError

WORDINGS = ("en",)
"""Languages in which questions are written."""


def mix_of(hardness: Mapping[str, float] | None) -> dict[Hardness, float]:
    """Shares of the levels that sum to one.

    Args:
        hardness: Share by level; a level that is not named is left out. None for evenly.

    Raises:
        ConfigurationError: A level is unknown, a share is no number from 0 on, or all are 0.

    >>> mix_of({"easy": 3, "extra": 1})
    {'easy': 0.75, 'extra': 0.25}
    """
    if hardness is None:
        return {level: 1 / len(LEVELS) for level in LEVELS}
    unknown = [name for name in hardness if name not in LEVELS]
    if unknown:
        raise ConfigurationError(
            f"hardness: there is no level {unknown[0]!r}; the levels are {', '.join(LEVELS)}."
        )
    for level, share in hardness.items():
        if not math.isfinite(share) or share < 0:
            raise ConfigurationError(f"hardness: the share of {level} is {share}; give 0 or more.")
    total = sum(hardness.values())
    if total <= 0:
        raise ConfigurationError("hardness: all shares are 0; give one level at least a share.")
    return {level: hardness[level] / total for level in LEVELS if hardness.get(level)}
