"""Groups of two: normalized advantages do not depend on the size of the rewards.

With two rollouts in a group, an advantage divided by the standard deviation of its group is always
+.71 or -.71, whether the rewards are 1 and 0 or .6 and .5. The first table shows this for pairs.
The second table trains a workflow model with the settings of a run that collapsed: five levels of
reward, groups of two, three prompts and a high learning rate. A training has collapsed if less than
a fifth of its last rollouts are valid workflows. It requires the extra `train`.

    python examples/lab/groups_of_two.py
    python examples/lab/groups_of_two.py --seeds 32
"""

from __future__ import annotations

import torch
from micro import Ending, Settings, Trainer, play
from tables import arguments, compare, print_table

from adapters.training.algorithms.advantages import advantages

PAIRS = ((1.0, 0.0), (1.0, 0.2), (0.6, 0.5), (0.4, 0.2))
ESTIMATORS = ("group_normalized", "group_centered", "batch_normalized_baseline")


def levels(text: str, task: int, luck: int) -> Ending:
    """Play with the five levels of reward of the run that collapsed."""
    ending = play(text, task, luck)
    steps = ((0.8, 0.7), (0.6, 0.4), (0.5, 0.2), (0.0, 0.0))
    reward = next(paid for reached, paid in steps if ending.progress >= reached)
    return ending._replace(reward=1.0 if ending.correct else reward)


COLLAPSED = Settings(learning_rate=1e-2, group_size=2, prompts=3, play=levels)
ARMS = {
    "groups of two": COLLAPSED,
    "two, centered only": COLLAPSED.but(estimator="group_centered"),
    "two, scaled by the batch": COLLAPSED.but(estimator="batch_normalized_baseline"),
    "groups of eight, two prompts": COLLAPSED.but(group_size=8, prompts=2),
    "two, a tenth of the rate": COLLAPSED.but(learning_rate=1e-3),
    "two, guards on": COLLAPSED.but(guards=True),
}
COLUMNS = {
    "spread": "spread of advantage sizes",
    "collapsed": "collapsed",
    "valid": "valid at the end",
}


def pairs() -> None:
    """Print the advantage of the better rollout in each of four pairs of one batch."""
    rewards = torch.tensor(PAIRS).flatten()
    groups = torch.arange(len(PAIRS)).repeat_interleave(2)
    better = [advantages(name, rewards, groups)[::2].tolist() for name in ESTIMATORS]
    rows = [
        [f"{high} and {low}", *(f"{value:+.2f}" for value in values)]
        for (high, low), *values in zip(PAIRS, *better, strict=True)
    ]
    print_table(["rewards of a pair", *ESTIMATORS], rows)


def run(settings: Settings, seed: int) -> dict[str, float]:
    """Train once and return the numbers of the row."""
    trainer = Trainer(settings, seed)
    history = trainer.train(given.updates)
    spreads = [step["advantage_spread"] for step in history if step["grad_norm"]]
    valid = trainer.examine()["valid"]
    return {
        "spread": sum(spreads) / max(len(spreads), 1),
        "collapsed": valid < 0.2,
        "valid": valid,
    }


if __name__ == "__main__":
    given = arguments(__doc__, seeds=8, updates=60)
    pairs()
    print()
    compare(ARMS, run, COLUMNS, given.seeds)
