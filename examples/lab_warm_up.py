"""How much imitation is enough: warm-ups of several sizes, a look at the format, and some GRPO.

Each line is one warm-up from scratch: what share of its turns hold valid calls, and what the reward
is in the first and in the last steps of GRPO. It needs the extra `train`.

    python examples/lab_warm_up.py
    python examples/lab_warm_up.py --questions 20 --epochs 1 --steps 2
"""

import argparse

from adapters.lab.sql.tiny_grpo import TinyGrpo, mean, train
from adapters.lab.sql.tiny_start import TinyStart, started


def main(questions: list[int], epochs: list[int], steps: int, rate: float) -> None:
    """Print one line for each warm-up."""
    for asked in questions:
        for rounds in epochs:
            size = TinyStart(demonstrations=asked, steps=asked * rounds // 4, learning_rate=rate)
            history = train(started(size, seed=0), TinyGrpo(steps, {"parsing": "strict"}), seed=0)
            valid = f"valid turns {mean(history, 'validity', first=5):.0%}"
            ends = [mean(history, "reward", first=5), mean(history, "reward", last=5)]
            told = f"{valid}, reward {ends[0]:+.3f} -> {ends[1]:+.3f}"
            print(f"{asked} questions, epochs {rounds}: {told}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Warm-ups of several sizes, and GRPO after each.")
    parser.add_argument("--questions", type=int, nargs="+", default=[100, 200, 800])
    parser.add_argument("--epochs", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--steps", type=int, default=20, help="steps of GRPO")
    parser.add_argument("--rate", type=float, default=8e-3, help="learning rate of the warm-up")
    given = parser.parse_args()
    main(given.questions, given.epochs, given.steps, given.rate)
