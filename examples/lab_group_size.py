"""Groups of two, or of eight? One training each, at the same number of rollouts per update.

Change the rate, the estimator or the sizes, and see when the model stops writing what can be run;
then see what guards make of it. It needs the extra `train`.

    python examples/lab_group_size.py
    python examples/lab_group_size.py --guards
    python examples/lab_group_size.py --rate 0.003 --updates 60
"""

import argparse

from adapters.lab.micro.guarded import Watch
from adapters.lab.micro.loop import MicroConfig, Trainer, mean, start_of
from adapters.training.guards.config import GuardConfig

ROLLOUTS = 16


def main(rate: float, updates: int, estimator: str, guards: bool) -> None:
    """Print how much is valid at the end, by group size."""
    for size in (2, 4, 8, 16):
        config = MicroConfig(
            group_size=size,
            prompts=ROLLOUTS // size,
            updates=updates,
            learning_rate=rate,
            estimator=estimator,
            rewards="levels",
        )
        trainer = Trainer(config, start_of(config, seed=0), seed=0)
        watch = Watch(trainer, GuardConfig(only_warn=not guards))
        history = [watch.step() for _ in range(updates) if not watch.stopped]
        dead = f"dead groups {mean(history, 'dead_groups'):.0%}"
        print(f"K={size}: valid at the end {mean(history, 'valid', 10):.0%}, {dead}")
        print("   guards that spoke: " + (", ".join(watch.tripped) or "none"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Group sizes at equal rollouts.")
    parser.add_argument("--rate", type=float, default=1e-2, help="learning rate")
    parser.add_argument("--updates", type=int, default=40, help="of each training")
    parser.add_argument("--estimator", default="group_normalized", help="of advantages")
    parser.add_argument("--guards", action="store_true", help="let guards act")
    given = parser.parse_args()
    main(given.rate, given.updates, given.estimator, given.guards)
