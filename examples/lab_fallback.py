"""What becomes of prose when a text that is no workflow is paid as if it were one?

The model starts with two texts in five as prose. Name another workflow to pay for them, or none.
It needs the extra `train`.

    python examples/lab_fallback.py
    python examples/lab_fallback.py --paid "Programmer" --updates 60
"""

import argparse

from adapters.lab.micro.loop import MicroConfig, mean, train


def main(paid: str, updates: int) -> None:
    """Print the share of prose at the start and at the end, paid and not paid."""
    for workflow in (None, paid):
        config = MicroConfig(updates=updates, rewards="levels", start_prose=0.4, fallback=workflow)
        history, _ = train(config, seed=0)
        ends = f"prose {history[0]['prose']:.0%} -> {mean(history, 'prose', 10):.0%}"
        print(f"paid {f'as `{workflow}`' if workflow else 'nothing'}: {ends}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Paying for text that is no workflow.")
    parser.add_argument("--paid", default="Custom -> Programmer -> Review ? Revise : done")
    parser.add_argument("--updates", type=int, default=40, help="of each training")
    given = parser.parse_args()
    main(given.paid, given.updates)
