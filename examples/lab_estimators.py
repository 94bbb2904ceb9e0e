"""The estimators and losses of the field, one training each.

Change the group size or the rate, or add a choice of your own to the list. It needs the extra
`train`.

    python examples/lab_estimators.py
    python examples/lab_estimators.py --size 2 --rate 0.01 --updates 60
"""

import argparse

from adapters.lab.experiments.estimators import METHODS, PASSES
from adapters.lab.micro.loop import MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import accuracy, examined
from adapters.lab.micro.tokens import CODE


def main(size: int, rate: float, updates: int) -> None:
    """Print what each is right in, and what is valid, at the end."""
    for name, method in METHODS.items():
        config = MicroConfig(
            group_size=size,
            prompts=32 // size,
            learning_rate=rate,
            passes=PASSES,
            tasks=CODE,
            **method,
        )
        trainer = Trainer(config, start_of(config, 0), 0)
        for _ in range(updates):
            trainer.step()
        batch = examined(trainer, 0)
        valid = sum(ending.valid for ending in batch.endings) / len(batch.endings)
        print(f"{name}: {accuracy(batch):.0%} right, {valid:.0%} valid")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Estimators of the field on workflows.")
    parser.add_argument("--size", type=int, default=8, help="of a group")
    parser.add_argument("--rate", type=float, default=1e-4, help="learning rate")
    parser.add_argument("--updates", type=int, default=16, help="of each training")
    given = parser.parse_args()
    main(given.size, given.rate, given.updates)
