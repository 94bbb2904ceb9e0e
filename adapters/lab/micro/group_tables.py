"""What follows for groups without any training: their advantages, and how many can teach.

The advantages are those of document 003, section 2, with the deviation over n as it has it, beside
ours, which is over n - 1. How many groups have right and wrong members is measured on the start of
the micro-model and compared with 1 - p^K - (1-p)^K, with one rate for all tasks and with the rate
of each: the formula is not linear in p, so the two differ as soon as tasks do.
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch

from adapters.lab.micro import world
from adapters.lab.micro.loop import MicroConfig, Trainer
from adapters.lab.micro.start import started
from adapters.training.algorithms.advantages import advantages
from adapters.training.algorithms.groups import live_chance

SIZES: Final = (2, 4, 8, 16)
PAIRS: Final = ((1.0, 0.0), (1.0, 0.2), (0.6, 0.5), (0.4, 0.2))


def advantage_table() -> dict[str, Any]:
    """The advantages of pairs, by both deviations, and of groups with one right member."""
    over_n = [_over_n(pair) for pair in PAIRS]
    ours = [_ours("group_normalized", pair) for pair in PAIRS]
    centred = [_ours("group_centered", pair) for pair in PAIRS]
    one_right = {f"one_right_of_{k}": _ours("group_normalized", _one_right(k))[0] for k in SIZES}
    return {
        "pairs": [list(pair) for pair in PAIRS],
        "over_n": over_n,
        "ours": ours,
        "centred": centred,
        "deviation_from_one": max(abs(abs(value) - 1) for row in over_n for value in row),
        "difference_by_gap": abs(ours[1][0] - ours[2][0]),
        "largest_of_two": max(abs(value) for row in (*over_n, *ours) for value in row),
        **one_right,
    }


def _one_right(size: int) -> tuple[float, ...]:
    return (1.0, *[0.0] * (size - 1))


def _over_n(rewards: tuple[float, ...]) -> list[float]:
    mean = math.fsum(rewards) / len(rewards)
    spread = math.sqrt(math.fsum((r - mean) ** 2 for r in rewards) / len(rewards))
    return [(r - mean) / spread for r in rewards]


def _ours(estimator: str, rewards: tuple[float, ...]) -> list[float]:
    table = torch.tensor(rewards, dtype=torch.float64)
    found: list[float] = advantages(estimator, table, torch.zeros(len(rewards)).long()).tolist()
    return found


def live_table(seed: int, tries: int) -> dict[str, float]:
    """The share of mixed groups of the start, and what the formula says.

    Args:
        seed: Of the start and of the draws.
        tries: Rollouts of each task, a multiple of the largest group.
    """
    trainer = Trainer(MicroConfig(group_size=tries, prompts=1), started(seed), seed)
    batch = trainer.rollouts(range(world.TASKS))
    rows = torch.tensor([e.correct for e in batch.endings]).reshape(-1, tries)
    rates = rows.double().mean(dim=1).tolist()
    rate = sum(rates) / len(rates)
    found = {"success_rate": rate}
    for size in SIZES:
        right = rows.reshape(-1, size).sum(dim=1)
        found[f"mixed_{size}"] = float(((right > 0) & (right < size)).double().mean())
        found[f"formula_{size}"] = live_chance(rate, size)
        chances = [live_chance(each, size) for each in rates]
        found[f"formula_by_task_{size}"] = sum(chances) / len(chances)
    return found
