"""The figures of a sample of rollouts, under the names of `metrics.jsonl` where they are the same.

`signal` tells for each group size how many groups would have members with different outcomes, and
`live` how many would have right and wrong ones; both are taken over all subsets of the tries, so
that eight tries of a task speak for groups of two, four and eight. Beyond the tries, `live` is
extrapolated from the spread of the success rates, and `signal` is what the tries alone have shown.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adapters.training.figures import Figures, batch_metrics
from adapters.training.outcomes import SIZES, Counts, by_group, counts_of, live_share
from adapters.training.preflight_sample import SamplePlayed
from toolgym.episode import Outcome
from toolgym.records import EpisodeRecord

_NULL: Final = re.compile(r"[:=]\s*(?:null|None)\b")


@dataclass(frozen=True)
class SampleFigures:
    """What a sample says.

    Attributes:
        numbers: By name; nan where there is nothing to be a share of.
        counts: Right and scored tries of each task.
        signal: By group size the share of groups with different outcomes.
        live: By group size the share of groups with right and wrong members.
        errors: How often each error code was told, the most frequent first.
        repairs: The same for repairs.
        example: A turn whose call failed, else one that needed a repair, else the first.
        records: The scored episodes.
    """

    numbers: dict[str, float]
    counts: tuple[Counts, ...]
    signal: dict[int, float]
    live: dict[int, float]
    errors: dict[str, int]
    repairs: dict[str, int]
    example: str
    records: tuple[EpisodeRecord, ...]


def figures_of(sample: SamplePlayed, sizes: Iterable[int] = SIZES) -> SampleFigures:
    """All figures of a sample.

    Args:
        sample: What was played.
        sizes: Group sizes that are asked about.
    """
    outcomes = [played.outcome for played in sample.rollouts]
    groups = by_group(outcomes, sample.groups).values()
    turns = [turn for played in sample.rollouts for turn in played.record.turns]
    counts = tuple(counts_of(members) for members in groups)
    return SampleFigures(
        numbers=_numbers(sample, turns),
        counts=counts,
        signal={size: _mean([_differing(m, size) for m in groups]) for size in sizes},
        live={size: live_share(counts, size) for size in sizes},
        errors=_counted(code for turn in turns for code in turn["errors"]),
        repairs=_counted(code for turn in turns for code in turn["repairs"]),
        example=_example(turns),
        records=tuple(p.record for p in sample.rollouts if p.record.scored),
    )


def _numbers(sample: SamplePlayed, turns: Sequence[dict[str, Any]]) -> dict[str, float]:
    """What the metrics of a step would be, and what only a preflight asks."""
    figures = [
        Figures.of(
            played.record,
            written=played.written,
            stopped_early=played.cut_off,  # a turn that was cut off was never read
            clipped=played.cut_off,
            unfinished=played.unfinished,
        )
        for played in sample.rollouts
    ]
    rewards = [played.record.score for played in sample.rollouts]
    with_calls = [turn["action"] for turn in turns if turn["calls"]]
    return {
        "rollouts": float(len(rewards)),
        **batch_metrics(figures, rewards, sample.groups),
        "reward_min": min(filter(math.isfinite, rewards), default=math.nan),
        "null_arguments": _mean([_NULL.search(text) is not None for text in with_calls]),
    }


def _differing(outcomes: Sequence[Outcome | None], size: int) -> float:
    """The share of subsets of one task's scored tries in which outcomes differ."""
    known = Counter(outcome for outcome in outcomes if outcome is not None)
    size = min(size, known.total())
    if size < 2:
        return 0.0
    alike = sum(math.comb(count, size) for count in known.values())
    return 1.0 - alike / math.comb(known.total(), size)


def _example(turns: Sequence[dict[str, Any]]) -> str:
    for key in ("errors", "repairs", "action"):
        found = next((turn["action"] for turn in turns if turn[key]), None)
        if found is not None:
            return str(found)
    return ""


def _counted(codes: Iterable[str]) -> dict[str, int]:
    return dict(Counter(codes).most_common())


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
