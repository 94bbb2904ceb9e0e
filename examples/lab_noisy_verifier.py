"""A verifier that is wrong now and then, and an audit of what it said.

Change how often it errs, and how many rollouts are judged again. It needs the extra `train`.

    python examples/lab_noisy_verifier.py
    python examples/lab_noisy_verifier.py --positives 0.05 --negatives 0 --audited 500
"""

import argparse

from adapters.lab.experiments.noisy_verifier import audited
from adapters.lab.micro.loop import MicroConfig, train
from adapters.lab.micro.measure import NoisyVerifier
from adapters.lab.micro.tokens import CODE


def main(positives: float, negatives: float, audited_rollouts: int, updates: int) -> None:
    """Train once, and print what an audit finds."""
    verifier = NoisyVerifier(positives, negatives, seed=0, fixed=False)
    config = MicroConfig(tasks=CODE, learning_rate=1e-4, updates=updates)
    train(config, seed=0, play=verifier)
    found = audited(verifier, seed=0, n=audited_rollouts)
    low, high = found.interval
    print(f"{found.decided} of {found.rollouts} rollouts judged again")
    print(f"the rules agree on {found.agreement:.1%} [{low:.1%}, {high:.1%}]")
    for each in found.disagreements[:3]:
        called = "right" if each.recorded else "wrong"
        print(f"  called {called}, and is not: task {each.task_id}, {each.said}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An audit of a noisy verifier.")
    parser.add_argument("--positives", type=float, default=0.1, help="share of false positives")
    parser.add_argument("--negatives", type=float, default=0.1, help="share of false negatives")
    parser.add_argument("--audited", type=int, default=200, help="rollouts to judge again")
    parser.add_argument("--updates", type=int, default=20, help="of the training")
    given = parser.parse_args()
    main(given.positives, given.negatives, given.audited, given.updates)
