"""The wall of nulls: a model that imitated calls which a data set padded, and two sets of tools.

Strict tools refuse every call, all rollouts earn the same, and the gradient is 0. Lenient ones drop
the nulls. The model is made from scratch, which takes half a minute; with fewer steps it knows
less, and the wall is the same. It needs the extra `train`.

    python examples/lab_null_wall.py
    python examples/lab_null_wall.py --warmup 200 --steps 2
"""

import argparse

from adapters.lab.sql.tiny_grpo import NO_COSTS, TinyGrpo, mean, train
from adapters.lab.sql.tiny_start import TinyStart, started


def main(padded: float, warmup: int, steps: int) -> None:
    """Print reward, gradient and nulls of every step with strict and with lenient tools."""
    for parsing in ("strict", "lenient"):
        start = started(TinyStart(padded=padded, steps=warmup), seed=0)
        history = train(start, TinyGrpo(steps, {"parsing": parsing, "rewards": NO_COSTS}), seed=0)
        print(f"{parsing} tools")
        for number, step in enumerate(history, start=1):
            told = f"reward {step['reward']:+.3f}, gradient {step['grad_norm']:.3f}"
            print(f"  step {number}: {told}, calls with nulls {mean([step], 'nulls'):.0%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Strict and lenient tools after padded data.")
    parser.add_argument("--padded", type=float, default=1.0, help="share of padded demonstrations")
    parser.add_argument("--warmup", type=int, default=1600, help="steps of imitation")
    parser.add_argument("--steps", type=int, default=20, help="steps of GRPO")
    given = parser.parse_args()
    main(given.padded, given.warmup, given.steps)
