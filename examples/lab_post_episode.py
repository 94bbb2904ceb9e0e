"""Calls after the end: what they cost without a bound, and what they cost here.

A wrong answer is given, and then given again and again. Without a bound every further call takes
off the same; here a score never falls below its floor.

    python examples/lab_post_episode.py
    python examples/lab_post_episode.py 1 25 1000
"""

import sys

from toolgym.registration import make

PRICE = 0.05


def main(loops: list[int]) -> None:
    """Print both scores by the number of calls after the end."""
    env = make("sqlgym/Explore-v0", dataset="tiny")
    for loop in loops:
        env.reset(seed=0)
        for _ in range(1 + loop):
            env.step({"name": "answer", "arguments": {"value": "no such value"}})
        score = env.finish()
        without = -PRICE * loop or 0.0  # and not -0
        print(f"{loop} calls after the end: {without:+.2f} without a bound, {score:+.2f} here")


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [0, 1, 5, 25, 100])
