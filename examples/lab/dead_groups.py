"""Dead groups: a group whose rollouts have the same outcome gives no learning signal.

A workflow model trains on hard prompts. A workflow is correct if it solves the task with each of
four draws of the operators. Most groups are all wrong, and their advantages are 0. With partial
credit, the reward is the share of solved draws. Dynamic sampling replaces dead groups with other
prompts. It requires the extra `train`.

    python examples/lab/dead_groups.py
"""

from __future__ import annotations

from micro import CODE, LUCK, Ending, Settings, Trainer, play
from tables import arguments, compare

FIRST = 5
"""Number of first steps, in which the model is close to its start."""


def solved(text: str, task: int) -> float:
    """Return the share of draws with which a workflow solves a task."""
    return sum(play(text, task, luck).correct for luck in range(LUCK)) / LUCK


def right_or_wrong(text: str, task: int, luck: int) -> Ending:
    """Play with the reward 1 if every draw is solved, else 0."""
    is_right = solved(text, task) == 1
    return play(text, task, luck)._replace(
        reward=float(is_right), correct=is_right, progress=0.3 + 0.7 * is_right
    )


def partial_credit(text: str, task: int, luck: int) -> Ending:
    """Play with the share of solved draws as reward."""
    share = solved(text, task)
    return right_or_wrong(text, task, luck)._replace(reward=share, progress=0.3 + 0.7 * share)


HARD = [CODE[item] for item in (1, 2, 3, 5, 6, 7)]
PLAIN = Settings(learning_rate=1e-4, group_size=4, prompts=2, tasks=HARD, play=right_or_wrong)
ARMS = {
    "right or wrong": PLAIN,
    "partial credit": PLAIN.but(play=partial_credit),
    "dynamic sampling, 3 draws": PLAIN.but(max_draws=3.0),
    "dynamic sampling, 8 draws": PLAIN.but(max_draws=8.0),
    "groups of 8": PLAIN.but(group_size=8),
}
COLUMNS = {
    "dead": f"dead groups, first {FIRST} steps",
    "idle": "of these without a gradient",
    "before": "right before",
    "after_rollouts": "right after equal rollouts",
    "after": "right after all updates",
    "rollouts": "rollouts",
}


def run(settings: Settings, seed: int) -> dict[str, float]:
    """Train once and return the numbers of the row."""
    trainer, history = Trainer(settings, seed), []
    rollouts = given.updates * PLAIN.group_size * PLAIN.prompts
    numbers = {"before": trainer.examine()["right"]}
    while len(history) < given.updates:
        history.append(trainer.step())
        if trainer.played >= rollouts and "after_rollouts" not in numbers:
            numbers["after_rollouts"] = trainer.examine()["right"]
    first = history[:FIRST]
    return numbers | {
        "dead": sum(step["dead_groups"] for step in first) / len(first),
        "idle": sum(step["grad_norm"] == 0 for step in first) / len(first),
        "after": trainer.examine()["right"],
        "rollouts": float(trainer.played),
    }


if __name__ == "__main__":
    given = arguments(__doc__, seeds=8, updates=30)
    compare(ARMS, run, COLUMNS, given.seeds)
