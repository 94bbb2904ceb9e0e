"""Length by what the sum over tokens is divided by, where length is paid and where luck is.

Paid by luck alone, a length that changes is a bias, or chance: try several seeds. It needs the
extra `train`.

    python examples/lab_length.py
    python examples/lab_length.py --seeds 3 --updates 60
"""

import argparse

from adapters.lab.experiments.length import NORMS, QA
from adapters.lab.micro.loop import MicroConfig, mean, train
from adapters.lab.micro.measure import chance, longer


def main(seeds: int, updates: int) -> None:
    """Print the tokens of a text before and after, by normalisation."""
    for play in (longer, chance):
        for name, changes in NORMS.items():
            config = MicroConfig(
                tasks=QA, learning_rate=1e-4, updates=updates, loss_changes=changes
            )
            runs = [train(config, seed, play=play)[0] for seed in range(seeds)]
            first = sum(run[0]["length"] for run in runs) / seeds
            last = sum(mean(run, "length", 5) for run in runs) / seeds
            print(f"paid by {play.__name__}, per {name}: {first:.1f} -> {last:.1f} tokens")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Length by normalisation.")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--updates", type=int, default=40, help="of each training")
    given = parser.parse_args()
    main(given.seeds, given.updates)
