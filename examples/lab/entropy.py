"""Entropy collapse: the model settles on one workflow before it has found a good one.

A workflow model trains on tasks for which one demonstrated workflow in forty is nearly always
correct, and others are correct half of the time. Entropy is the mean over sampled tokens, in nats.
It is low from the start, because the syntax determines most tokens of a workflow. It requires the
extra `train`.

    python examples/lab/entropy.py
"""

from __future__ import annotations

from micro import CODE, Settings, Trainer
from tables import arguments, compare

FAST = Settings(learning_rate=1e-3, tasks=CODE)
BONUS = {"entropy_bonus": 0.1}
ARMS = {
    "learning rate 0.001": FAST,
    "0.001, entropy bonus 0.1": FAST.but(loss=BONUS),
    "0.001, guards on": FAST.but(guards=True),
    "0.0001": FAST.but(learning_rate=1e-4),
    "0.0001, entropy bonus 0.1": FAST.but(learning_rate=1e-4, loss=BONUS),
}
COLUMNS = {
    "entropy_before": "entropy before",
    "entropy": "entropy after",
    "right_before": "right before",
    "right": "right after",
}


def run(settings: Settings, seed: int) -> dict[str, float]:
    """Train once and return the numbers of the row."""
    trainer = Trainer(settings, seed)
    before = trainer.examine()
    trainer.train(given.updates)
    return trainer.examine() | {f"{name}_before": value for name, value in before.items()}


if __name__ == "__main__":
    given = arguments(__doc__, seeds=8, updates=60)
    compare(ARMS, run, COLUMNS, given.seeds)
