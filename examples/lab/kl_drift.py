"""KL drift: without a penalty the model moves far away from its start.

A workflow model trains at a high learning rate, with and without a KL penalty in the loss. Drift is
the KL divergence from the start at the end of the training, in nats per token of the model's own
rollouts. It requires the extra `train`.

    python examples/lab/kl_drift.py
"""

from __future__ import annotations

from micro import CODE, Settings, Trainer
from tables import arguments, compare

FREE = Settings(learning_rate=1e-3, tasks=CODE)
ARMS = {
    "no penalty": FREE,
    "KL coefficient 0.04": FREE.but(loss={"beta": 0.04}),
    "KL coefficient 0.2": FREE.but(loss={"beta": 0.2}),
    "KL coefficient 1": FREE.but(loss={"beta": 1.0}),
}
COLUMNS = {"drift": "drift", "valid": "valid", "before": "right before", "right": "right after"}


def run(settings: Settings, seed: int) -> dict[str, float]:
    """Train once and return the numbers of the row."""
    trainer = Trainer(settings, seed)
    before = trainer.examine()["right"]
    trainer.train(given.updates)
    return trainer.examine() | {"before": before}


if __name__ == "__main__":
    given = arguments(__doc__, seeds=8, updates=60)
    compare(ARMS, run, COLUMNS, given.seeds)
