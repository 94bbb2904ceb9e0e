"""Play episodes with Gymnasium's interface.

Actions and observations are texts. An action is a message of a language model. This script uses a
fixed policy instead: it describes the first table, counts its rows, and answers with the count.

    python examples/gym_loop.py       # three episodes
    python examples/gym_loop.py 10    # ten episodes
"""

import json
import re
import sys

import gymnasium as gym

import sqlgym  # noqa: F401  (its import registers the environments)


def call(name: str, **arguments: object) -> str:
    """Return a tool call as a model writes it."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def main(episodes: int = 3) -> None:
    """Play episodes and print them."""
    env = gym.make("sqlgym/Explore-v0", step_limit=5)
    for seed in range(episodes):
        # A seed selects the same task on every machine. An id selects a task too.
        wanted = {"task_id": "ferry_line-001"} if seed == 0 else None
        observation, info = env.reset(seed=seed, options=wanted)
        table = re.search(r"Tables: (\w+)", observation)[1]
        print(f"\n{info['task_id']}: {observation.splitlines()[0]}")

        count = f'SELECT COUNT(*) FROM "{table}"'
        script = [call("describe", table_name=table), call("query", sql=count)]
        terminated = truncated = False
        while not (terminated or truncated):
            # The result of the query is a header line and a line with the count.
            action = script.pop(0) if script else call("answer", value=observation.splitlines()[1])
            observation, reward, terminated, truncated, info = env.step(action)
            print(f"  {info['call'].name:10} reward {reward:+.3f}  {observation.splitlines()[0]}")

        parts = {name: round(value, 3) for name, value in info["reward_parts"].items() if value}
        print(f"  correct: {info['correct']}, score {info['score']:.3f}, of which {parts}")
    env.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
