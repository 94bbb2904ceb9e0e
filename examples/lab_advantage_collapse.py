"""Prompts that are too hard: plain groups, drawing other prompts, or larger groups.

A workflow counts as right if it is right whatever the luck, which hardly any is. Compared is what
a model can do after so many rollouts, those that were thrown away included. It needs the extra
`train`.

    python examples/lab_advantage_collapse.py
    python examples/lab_advantage_collapse.py --rollouts 2000 --rate 0.0003
"""

import argparse

from adapters.lab.micro.loop import MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import accuracy, always, examined
from adapters.lab.micro.tokens import CODE

METHODS = {
    "groups of 8": {"group_size": 8},
    "groups of 8, dynamic sampling": {"group_size": 8, "draws": 3.0},
    "groups of 16": {"group_size": 16},
}


def main(rollouts: int, rate: float) -> None:
    """Print the accuracy of each method at the end."""
    for name, method in METHODS.items():
        config = MicroConfig(tasks=CODE, learning_rate=rate, **method)
        trainer = Trainer(config, start_of(config, 0), 0, play=always)
        updates = 0.0
        while trainer.played < rollouts:
            updates += trainer.step()["updated"]
        right = accuracy(examined(trainer, 0))
        print(f"{name}: {trainer.played} rollouts, {updates:.0f} updates, {right:.0%} right")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Hard prompts at equal rollouts.")
    parser.add_argument("--rollouts", type=int, default=960)
    parser.add_argument("--rate", type=float, default=1e-4, help="learning rate")
    given = parser.parse_args()
    main(given.rollouts, given.rate)
