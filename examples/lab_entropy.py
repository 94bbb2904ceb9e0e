"""Where entropy goes, by learning rate, and what a bonus does about it.

Most tokens of a workflow have to be what they are, so entropy per token is low from the start. It
needs the extra `train`.

    python examples/lab_entropy.py
    python examples/lab_entropy.py --bonus 0.1 --updates 60
"""

import argparse

from adapters.lab.micro.loop import MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import accuracy, entropy, examined
from adapters.lab.micro.tokens import CODE


def main(bonus: float, updates: int) -> None:
    """Print entropy and accuracy before and after each training."""
    for rate in (1e-4, 3e-3):
        for price in (0.0, bonus):
            config = MicroConfig(
                tasks=CODE, learning_rate=rate, loss_changes={"entropy_bonus": price}
            )
            trainer = Trainer(config, start_of(config, 0), 0)
            told = []
            for steps in (0, updates):
                for _ in range(steps):
                    trainer.step()
                batch = examined(trainer, 0)
                told.append(f"{entropy(trainer.model, batch):.3f} nats, {accuracy(batch):.0%}")
            print(f"rate {rate:g}, bonus {price:g}: {' right -> '.join(told)} right")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Entropy by rate and bonus.")
    parser.add_argument("--bonus", type=float, default=0.01, help="price of a nat of entropy")
    parser.add_argument("--updates", type=int, default=40, help="of each training")
    given = parser.parse_args()
    main(given.bonus, given.updates)
