"""Algorithms of the field on SQL, each after the same warm-up.

Every one is an entry of a dictionary: an estimator of advantages, and a loss. Add your own. The
model is made from scratch, which takes half a minute each time. It needs the extra `train`.

    python examples/lab_estimators_sql.py
    python examples/lab_estimators_sql.py --only dapo gspo --warmup 400 --steps 10
"""

import argparse

from adapters.lab.experiments.estimators_sql import ARMS
from adapters.lab.sql.tiny_grpo import TinyGrpo, mean, train
from adapters.lab.sql.tiny_start import TinyStart, started


def main(names: list[str], warmup: int, steps: int) -> None:
    """Print reward and valid calls of the first and the last batches, by algorithm."""
    for name in names:
        arm = ARMS[name]
        trainer = {**arm.trainer, "updates_per_batch": 2}
        history = train(started(TinyStart(steps=warmup), 0), TinyGrpo(steps, trainer=trainer), 0)
        ends = [mean(history, "reward", **side) for side in ({"first": 5}, {"last": 5})]
        valid = f"valid calls at the end {mean(history, 'validity', last=5):.0%}"
        print(f"{arm.title}: reward {ends[0]:+.3f} -> {ends[1]:+.3f}, {valid}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Estimators and losses on SQL.")
    parser.add_argument("--only", nargs="+", choices=ARMS, default=list(ARMS), help="which")
    parser.add_argument("--warmup", type=int, default=1600, help="steps of imitation")
    parser.add_argument("--steps", type=int, default=40, help="updates, two from each batch")
    given = parser.parse_args()
    main(given.only, given.warmup, given.steps)
