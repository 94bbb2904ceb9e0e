"""How far a model drifts from where it began, with the divergence charged here or there.

Change the price, or the rate. It needs the extra `train`.

    python examples/lab_kl.py
    python examples/lab_kl.py --beta 0.2 --rate 0.003
"""

import argparse

from adapters.lab.micro.loop import MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import accuracy, drift, examined
from adapters.lab.micro.tokens import CODE


def main(beta: float, rate: float, updates: int) -> None:
    """Print drift and accuracy at the end, by where the divergence is charged."""
    forms = {
        "not charged": {},
        "in the reward": {"beta": beta, "kl_in_reward": True},
        "in the loss": {"beta": beta, "kl": "k3"},
    }
    for name, changes in forms.items():
        config = MicroConfig(tasks=CODE, learning_rate=rate, loss_changes=changes)
        trainer = Trainer(config, start_of(config, 0), 0)
        for _ in range(updates):
            trainer.step()
        batch = examined(trainer, 0)
        moved = drift(trainer.model, start_of(config, 0), batch)["drift"]
        print(f"{name}: {moved:.3f} nats per token away, {accuracy(batch):.0%} right")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Drift, by where the divergence is charged.")
    parser.add_argument("--beta", type=float, default=0.04, help="price of a nat")
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--updates", type=int, default=40, help="of each training")
    given = parser.parse_args()
    main(given.beta, given.rate, given.updates)
