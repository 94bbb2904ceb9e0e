"""Groups of two: do they make training collapse, and what of it is the deviation they divide by?

Document 003 says that it is the advantages: with two rollouts in a group they are always +1 or -1.

A training has collapsed when of its last ten batches less than a fifth is valid. Cells differ in
the size of groups, in the estimator and in the step, and are compared at equal rollouts per update
(16); beside them stand the run that the claims are about and the cure that it proposes, at their
own sizes, that run under guards, and single groups, which need no training.

The advantages of single groups are those of document 003, section 2, with the deviation over n as
it has it, beside ours, which is over n - 1. How many groups have right and wrong members is
measured on the start of the micro-model and compared with 1 - p^K - (1-p)^K, with one rate for all
tasks and with the rate of each: the formula is not linear in p, so the two differ as soon as tasks
do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import torch

from adapters.lab.cell_figures import grid, lines
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure, Series
from adapters.lab.micro import world
from adapters.lab.micro.guarded import Watch
from adapters.lab.micro.loop import History, MicroConfig, Trainer, mean, start_of
from adapters.lab.micro.measure import examined
from adapters.lab.micro.start import started
from adapters.lab.prediction import (
    Cells,
    Prediction,
    exact,
    first_number,
    mean_above,
    mean_unchanged,
    share_above,
    share_unchanged,
    values_of,
)
from adapters.training.algorithms.advantages import advantages
from adapters.training.algorithms.groups import live_chance
from adapters.training.guards.config import GuardConfig
from toolgym.intervals import average

SIZES: Final = (2, 4, 8, 16)
PAIRS: Final = ((1.0, 0.0), (1.0, 0.2), (0.6, 0.5), (0.4, 0.2))


def advantage_table() -> dict[str, Any]:
    """The advantages of pairs, by both deviations, and of groups with one right member."""
    over_n = [_over_n(pair) for pair in PAIRS]
    ours = [_ours("group_normalized", pair) for pair in PAIRS]
    centred = [_ours("group_centered", pair) for pair in PAIRS]
    one_right = {f"one_right_of_{k}": _ours("group_normalized", _one_right(k))[0] for k in SIZES}
    return {
        "pairs": [list(pair) for pair in PAIRS],
        "over_n": over_n,
        "ours": ours,
        "centred": centred,
        "deviation_from_one": max(abs(abs(value) - 1) for row in over_n for value in row),
        "difference_by_gap": abs(ours[1][0] - ours[2][0]),
        "largest_of_two": max(abs(value) for row in (*over_n, *ours) for value in row),
        **one_right,
    }


def _one_right(size: int) -> tuple[float, ...]:
    return (1.0, *[0.0] * (size - 1))


def _over_n(rewards: tuple[float, ...]) -> list[float]:
    mean = math.fsum(rewards) / len(rewards)
    spread = math.sqrt(math.fsum((r - mean) ** 2 for r in rewards) / len(rewards))
    return [(r - mean) / spread for r in rewards]


def _ours(estimator: str, rewards: tuple[float, ...]) -> list[float]:
    table = torch.tensor(rewards, dtype=torch.float64)
    found: list[float] = advantages(estimator, table, torch.zeros(len(rewards)).long()).tolist()
    return found


def live_table(seed: int, tries: int) -> dict[str, float]:
    """The share of mixed groups of the start, and what the formula says.

    Args:
        tries: Rollouts of each task, a multiple of the largest group.
    """
    trainer = Trainer(MicroConfig(group_size=tries, prompts=1), started(seed), seed)
    batch = trainer.rollouts(range(world.TASKS))
    rows = torch.tensor([e.correct for e in batch.endings]).reshape(-1, tries)
    rates = rows.double().mean(dim=1).tolist()
    rate = sum(rates) / len(rates)
    found = {"success_rate": rate}
    for size in SIZES:
        right = rows.reshape(-1, size).sum(dim=1)
        found[f"mixed_{size}"] = float(((right > 0) & (right < size)).double().mean())
        found[f"formula_{size}"] = live_chance(rate, size)
        chances = [live_chance(each, size) for each in rates]
        found[f"formula_by_task_{size}"] = sum(chances) / len(chances)
    return found


ROLLOUTS: Final = 16
COLLAPSED: Final = 0.2
ESTIMATORS: Final[Mapping[str, Mapping[str, Any]]] = {
    "std": {"estimator": "group_normalized"},
    "none": {"estimator": "group_centered"},
    "batch": {"estimator": "batch_normalized"},
    "loo": {"estimator": "leave_one_out"},
    "clip": {"estimator": "group_normalized", "limit": 0.5},
}
"""`clip` cuts off below what groups of two give, 0.71: the seed's 2 or 3 would never be reached."""
RATES: Final = (1e-3, 3e-3, 1e-2)
RATE: Final = 1e-2
STEP: Final = 0.15
"""Length of a matched step."""
_AT: Final = f"lr{RATE:g}"
PREDICTIONS: Final[tuple[Prediction, ...]] = (
    exact(
        "plus_minus_one",
        "With K=2 a group that differs gives exactly +1 and -1 (with the deviation over n).",
        lambda cells: first_number(cells, "advantages", "deviation_from_one"),
        within=1e-6,
    ),
    exact(
        "gap_erased",
        "With K=2 it does not matter by how much two rewards differ: 1 and 0.2, or 0.6 and 0.5.",
        lambda cells: first_number(cells, "advantages", "difference_by_gap"),
        within=0.001,
    ),
    exact(
        "clipping_never_acts",
        "At K=2 no advantage is beyond 2, so cutting off there (or at 3) does nothing.",
        lambda cells: 2 - abs(first_number(cells, "advantages", "largest_of_two")),
        at_least=1.0 - 1e-6,
    ),
    mean_above(
        "updates_collapse",
        "With K=2 and 3 prompts most updates are followed at once by a batch with nothing valid.",
        "p30",
        "updates_then_nothing_valid",
        by=0.5,
        unit="share",
    ),
    share_above(
        "p30_collapses",
        "Trainings with K=2 and 3 prompts collapse, by half at least.",
        "p30",
        "collapsed",
        by=0.5,
    ),
    share_unchanged(
        "lower_rate_no_cure",
        "A learning rate ten times lower leaves the share of collapses with K=2 as it is.",
        "p30",
        "collapsed",
        than="p30-lr10",
        within=0.2,
    ),
    share_above(
        "plan_a_cures",
        "K=8 with 2 prompts collapses less than K=2 with 3 prompts.",
        "p30",
        "collapsed",
        than=f"k8-std-{_AT}",
        by=0.2,
    ),
    share_above(
        "guards_undo",
        "Under our guards fewer of those trainings leave a model that writes nothing valid.",
        "p30",
        "nothing_left",
        than="p30-guarded",
        by=0.2,
    ),
    share_above(
        "group_size_matters",
        "At equal rollouts K=2 collapses more than K=8.",
        f"k2-std-{_AT}",
        "collapsed",
        than=f"k8-std-{_AT}",
        by=0.2,
    ),
    share_above(
        "one_prompt",
        "With one prompt per update K=2 collapses more than K=8 with its four times the rollouts.",
        "one-k2",
        "collapsed",
        than="one-k8",
        by=0.05,
    ),
    share_above(
        "deviation_matters",
        "At K=2 dividing by the deviation makes more trainings collapse than not dividing.",
        f"k2-std-{_AT}",
        "collapsed",
        than=f"k2-none-{_AT}",
        by=0.2,
    ),
    share_above(
        "deviation_matters_matched",
        "The same with steps of equal length.",
        "k2-std-matched",
        "collapsed",
        than="k2-none-matched",
        by=0.2,
    ),
    mean_unchanged(
        "dead_groups",
        "With success rate p the share of mixed groups of two is 1 - p^2 - (1-p)^2.",
        "live",
        lambda record: record["mixed_2"] - record["formula_2"],
        within=0.03,
        unit="share",
    ),
    mean_unchanged(
        "dead_groups_by_task",
        "The same with the success rate of each task.",
        "live",
        lambda record: record["mixed_2"] - record["formula_by_task_2"],
        within=0.03,
        unit="share",
    ),
)


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A table of advantages, a table of live groups, or a training."""
    if config["what"] == "advantages":
        return advantage_table()
    if config["what"] == "live groups":
        return live_table(seed, config["tries"])
    settings = MicroConfig.of(config)
    trainer = Trainer(settings, start_of(settings, seed), seed)
    watch = Watch(trainer, GuardConfig()) if config.get("guarded") else None
    history: History = []
    while len(history) < settings.updates and not (watch and watch.stopped):
        history.append(watch.step() if watch else trainer.step())
    left = examined(trainer, seed)
    valid = sum(ending.valid for ending in left.endings) / len(left.endings)
    return _record(history) | {"valid_left": valid, "nothing_left": valid < COLLAPSED}


def _record(history: History) -> dict[str, Any]:
    valid = [step["valid"] for step in history]
    followed = [
        after == 0
        for before, after, step in zip(valid, valid[1:], history, strict=False)
        if step["updated"] and before >= 0.5
    ]
    return {
        "collapsed": mean(history, "valid", 10) < COLLAPSED,
        "valid_end": mean(history, "valid", 10),
        "score_end": mean(history, "score", 10),
        "prose_end": mean(history, "prose", 10),
        "dead_groups": mean(history, "dead_groups"),
        "updates_then_nothing_valid": sum(followed) / len(followed) if followed else None,
        "largest_advantage": max(step["advantage"] for step in history),
        "valid": valid,
    }


def _training(size: int, estimator: str, rate: float, **more: Any) -> Config:
    settings = {"group_size": size, "prompts": ROLLOUTS // size, "learning_rate": rate}
    return {
        "what": "training",
        "rewards": "levels",
        **settings,
        **ESTIMATORS[estimator],
        **more,
    }


def cells(scale: Scale) -> dict[str, Config]:
    """The tables and the seed's own run at every scale; at `full` all sizes, estimators, steps."""
    configs: dict[str, Config] = {
        "advantages": {"what": "advantages"},
        "live": {"what": "live groups", "tries": 32},
        "p30": _training(2, "std", RATE, prompts=3),
        "p30-guarded": {**_training(2, "std", RATE, prompts=3), "guarded": True},
        "p30-lr10": _training(2, "std", RATE / 10, prompts=3),
        "one-k2": _training(2, "std", RATES[1], prompts=1),
        "one-k8": _training(8, "std", RATES[1], prompts=1),
    }
    everything = scale == "full"
    for size in SIZES if everything else (2, 8):
        for name in ESTIMATORS if everything else ("std", "none"):
            for rate in RATES if everything else (RATE,):
                configs[f"k{size}-{name}-lr{rate:g}"] = _training(size, name, rate)
            configs[f"k{size}-{name}-matched"] = _training(size, name, STEP, optimizer="matched")
    return configs


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [_collapses(cells), _live(cells), _validity(cells)]


def _collapses(cells: Cells) -> Figure:
    sizes = [size for size in SIZES if f"k{size}-std-{_AT}" in cells]
    return grid(
        "group_size_collapse",
        "Trainings that collapse, by group size",
        f"At {ROLLOUTS} rollouts per update; less than a fifth of the last ten batches is valid.",
        cells,
        {
            f"{name}, {step}": [f"k{size}-{name}-{end}" for size in sizes]
            for end, step in ((_AT, "Adam"), ("matched", "steps of equal length"))
            for name in ("std", "none")
        },
        [f"K = {size}" for size in sizes],
        "collapsed",
        counted=True,
    )


def _live(cells: Cells) -> Figure:
    rows = {
        "measured": "mixed",
        "formula, one rate": "formula",
        "formula, rate of each task": "formula_by_task",
    }
    series = tuple(
        Series.of(
            label,
            [average(list(values_of(cells, "live", f"{key}_{s}").values())) for s in SIZES],
        )
        for label, key in rows.items()
    )
    note = "Right and wrong rollouts in one group, of the start. Tasks differ in their rate."
    title = "Groups that can teach, by group size"
    return Figure("group_size_live", title, note, series, tuple(f"K = {s}" for s in SIZES))


def _validity(cells: Cells) -> Figure:
    shown = {
        "K=2, 3 prompts": "p30",
        "the same, rate / 10": "p30-lr10",
        "the same, under guards": "p30-guarded",
        "K=8, 2 prompts": f"k8-std-{_AT}",
    }
    title = "Valid workflows while training"
    return lines("group_size_validity", title, "Mean over seeds.", cells, shown, "valid")


EXPERIMENT: Final = Experiment(
    name="group-size",
    document="003",
    title="Groups of two",
    claim=(
        "With K=2 advantages are always +1 or -1, which made 97.4 % of updates collapse at once"
        " into prose. A larger K or leaving out the deviation cures it; a lower rate does not."
    ),
    setting=(
        "The workflow micro-model is trained for 60 updates with the old system's five reward"
        f" levels, text that is no workflow earning 0. {ROLLOUTS} rollouts per update, but for the"
        " claim's own run (K=2, 3 prompts) and its cure (K=8, 2 prompts)."
    ),
    prevention=(
        "Groups have eight members by default, and leads are divided by the deviation of the"
        " whole batch; `StableGRPOConfig` refuses pairs divided by their own, since the size of a"
        " lead is lost in them. What ended trainings here was the rate, at every size of groups:"
        " guards take back an update after which calls are no longer valid, and lower the rate."
    ),
    cells=cells,
    seeds={"smoke": 2, "quick": 32, "full": 64},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.0,
)
