"""Penalties for calls after the end: without a bound, as in the original, and with ours.

Real episodes of `sqlgym/Explore-v0` are played to their end, and then on: the answer again, as
often as the loop is long. Ours is the score that the environment gives. The unbounded law is the
original's as far as it is told: every such call takes off the same, so that a loop of 25 comes to
-1.25, the reward that was seen at step 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure, Series
from adapters.lab.prediction import Cells, Prediction, exact, first_record
from adapters.training.algorithms.advantages import advantages
from toolgym import registration
from toolgym.env import ToolEnv

ENVIRONMENT: Final = "sqlgym/Explore-v0"
LOOPS: Final = (0, 1, 2, 5, 10, 25, 50, 100, 1000)
"""Calls after the end."""
PRICE: Final = 0.05
"""Of one of them under the unbounded law."""
LONG: Final = 25
LAWS: Final = ("unbounded", "bounded")
PREDICTIONS: Final[tuple[Prediction, ...]] = (
    exact(
        "no_floor",
        "Without a bound a loop of 25 calls costs 1.25 and more.",
        lambda cells: _at(cells, "unbounded_wrong", 0) - _at(cells, "unbounded_wrong", LONG),
        at_least=1.25 - 1e-9,
    ),
    exact(
        "order_lost",
        "Without a bound a right answer with a loop of 25 is worth less than a wrong one.",
        lambda cells: _at(cells, "unbounded_wrong", 0) - _at(cells, "unbounded_right", LONG),
        at_least=0.0,
    ),
    exact(
        "no_signal",
        "Where all rollouts of a group loop alike, the penalty teaches nothing.",
        lambda cells: _at(cells, "unbounded_signal_where_all_looped"),
        within=1e-9,
    ),
    exact(
        "loop_dominates",
        "Without a bound one loop in a group pushes harder than a right answer pulls.",
        lambda cells: _at(cells, "unbounded_push_of_loop_over_right"),
        at_least=1.0,
    ),
    exact(
        "size_erased",
        "Divided by the group's deviation, the size of a penalty is lost: -1.25 and -0.18 push"
        " the one that looped away equally hard.",
        lambda cells: (
            _at(cells, "unbounded_push_against_loop_in_deviations")
            - _at(cells, "bounded_push_against_loop_in_deviations")
        ),
        within=0.01,
    ),
    exact(
        "floor",
        "Ours: a thousand calls after the end never bring a score below its floor.",
        lambda cells: _at(cells, "bounded_wrong", 1000) - _at(cells, "floor"),
        at_least=0.0,
    ),
    exact(
        "order_kept",
        "Ours: a right answer with a loop of 1,000 beats a tidy wrong one by the margin 0.3.",
        lambda cells: _at(cells, "bounded_right", 1000) - _at(cells, "bounded_wrong", 0),
        at_least=0.3,
    ),
    exact(
        "loop_costs",
        "Ours: a loop still costs, so that groups in which only some loop learn to stop.",
        lambda cells: _at(cells, "bounded_push_against_loop"),
        at_least=0.05,
    ),
)


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Play loops after right and wrong answers, and compare the rollouts of a group."""
    env = registration.make(ENVIRONMENT, dataset="tiny")
    right = [_loop(env, seed, loop, answer=True) for loop in config["loops"]]
    wrong = [_loop(env, seed, loop, answer=False) for loop in config["loops"]]
    unbounded = {
        kind: [paid[0] - PRICE * loop for loop in config["loops"]]
        for kind, paid in (("right", right), ("wrong", wrong))
    }
    bounded = {"right": right, "wrong": wrong}
    record: dict[str, Any] = {"loops": list(config["loops"]), "floor": env.reward_config.bounds[0]}
    for law, paid in zip(LAWS, (unbounded, bounded), strict=True):
        record |= {f"{law}_{kind}": values for kind, values in paid.items()}
        record |= _group_of(law, paid, config["loops"].index(LONG))
    return record


def _loop(env: ToolEnv[Any], seed: int, loop: int, *, answer: bool) -> float:
    """The score of an episode that goes on for so many calls after a right or a wrong answer."""
    env.reset(seed=seed)
    again = {"name": "answer", "arguments": {"value": "no such value"}}
    if answer:
        player = env.expert()
        action = next(player)
        while not env.episode.over:
            observation = env.step(action)[0]
            action = again if env.episode.over else player.send(observation)
    else:
        env.step(again)
    for _ in range(loop):
        env.step(again)
    return env.finish()


def _group_of(law: str, paid: Mapping[str, Sequence[float]], long: int) -> dict[str, float]:
    """What groups of six make of a loop: of a right rollout beside tidy wrong ones; of all; of one
    among tidy wrong ones; of one beside a right one."""
    right, wrong = paid["right"], paid["wrong"]
    groups = {
        "right_looped": [right[long], *[wrong[0]] * 5],
        "all_looped": [wrong[long]] * 6,
        "one_looped": [wrong[long], *[wrong[0]] * 5],
        "right_among": [right[0], wrong[long], *[wrong[0]] * 4],
    }
    leads = {name: _advantages("group_centered", rewards) for name, rewards in groups.items()}
    scaled = _advantages("group_normalized", groups["one_looped"])
    return {
        f"{law}_lead_of_right_that_looped": leads["right_looped"][0],
        f"{law}_signal_where_all_looped": max(map(abs, leads["all_looped"])),
        f"{law}_push_against_loop": -leads["one_looped"][0],
        f"{law}_push_against_loop_in_deviations": -scaled[0],
        f"{law}_push_of_loop_over_right": -leads["right_among"][1] / leads["right_among"][0],
    }


def _advantages(estimator: str, rewards: Sequence[float]) -> list[float]:
    """Of one group."""
    groups = torch.zeros(len(rewards), dtype=torch.long)
    found: list[float] = advantages(estimator, torch.tensor(rewards), groups).tolist()
    return found


def cells(scale: Scale) -> dict[str, Config]:
    """One at every scale."""
    return {"loops": {"loops": list(LOOPS)}}


def _at(cells: Cells, key: str, loop: int | None = None) -> float:
    record = first_record(cells, "loops")
    if not record:
        return float("nan")
    return float(record[key] if loop is None else record[key][record["loops"].index(loop)])


def figures(cells: Cells) -> list[Figure]:
    """Both laws, by how long the loop is."""
    record = first_record(cells, "loops")
    if not record:
        return []
    shown = [place for place, loop in enumerate(record["loops"]) if loop <= 50]
    names = {"unbounded": "unbounded", "ours": "bounded"}
    series = tuple(
        Series(f"{label}, {kind}", [record[f"{law}_{kind}"][i] for i in shown])
        for label, law in names.items()
        for kind in ("right", "wrong")
    )
    return [
        Figure(
            "post_episode_scores",
            "Score by calls after the end",
            "Under the unbounded law a right answer is soon worth less than a wrong one. Ours"
            " bends, and keeps them apart.",
            series,
            tuple(float(record["loops"][i]) for i in shown),
            "calls after the end",
            "number",
        )
    ]


EXPERIMENT: Final = Experiment(
    name="post-episode",
    document="000",
    title="Penalties after the end",
    claim=(
        "Penalties for calls after the end added up (-1.25 at step 10, worse later), and did not"
        " help, because all rollouts of a group were equally bad."
    ),
    setting=(
        f"Episodes of {ENVIRONMENT} are played to the end and then looped. The unbounded law takes"
        f" {PRICE:g} off for each call (25 calls make -1.25); ours is what the environment scores."
        " Groups of six are compared by their mean."
    ),
    prevention=(
        "Costs saturate: a score stays between -0.25 and 1, and that every right episode beats"
        " every wrong one by a margin is proved when the rewards are configured."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 3, "full": 10},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 0.1,
)
