"""Write your own environment: find a hidden number by asking whether it is above a guess.

A subclass defines how an episode begins, its tools, and an expert. `ToolEnv` handles the budget,
parsing and repair of calls, errors, and the score.

    python examples/own_environment.py
"""

import sys

import gymnasium as gym

from toolgym import Task, TaskSet, ToolEnv, policies, rollout, tool
from toolgym.testing import check_tool_env


class HigherLower(ToolEnv):
    """Find the hidden whole number between 1 and 100."""

    def __init__(self, **options):
        tasks = [Task(f"n{n}", "Which number is it?", extra={"n": n}) for n in range(1, 101)]
        super().__init__(TaskSet(tasks, name="numbers"), **options)

    def begin(self, task):
        """Prepare the episode and return the question."""
        return task.question

    def expert(self):
        """Yield calls and receive their results; an expert must not read the answer."""
        low, high = 1, 100
        while low < high:
            guess = (low + high) // 2
            told = yield {"name": "is_above", "arguments": {"number": guess}}
            low, high = (guess + 1, high) if told.startswith("yes") else (low, guess)
        yield {"name": "answer", "arguments": {"number": low}}

    @tool
    def is_above(self, number: int) -> str:
        """Ask whether the hidden number is above this one.

        Args:
            number: The number to compare with.
        """
        self.reach(max(0.0, 1 - abs(number - self.task.extra["n"]) / 50))
        return "yes" if self.task.extra["n"] > number else "no"

    @tool(terminal=True)
    def answer(self, number: int) -> str:
        """Say which number it is.

        Args:
            number: The hidden number.
        """
        return self.submit(number == self.task.extra["n"])


gym.register(id="mygym/HigherLower-v0", entry_point=HigherLower)


def main(seeds: int = 3) -> None:
    """Check the environment, then let the expert play."""
    check_tool_env("mygym/HigherLower-v0", seeds=seeds)
    print("check_tool_env passed")
    record = rollout.play("mygym/HigherLower-v0", policies.ExpertPolicy(), seed=0)
    for turn in record.turns:
        print(f"> {turn['action']}\n{turn['observation']}")
    print(f"correct: {record.correct}, score {record.score:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
