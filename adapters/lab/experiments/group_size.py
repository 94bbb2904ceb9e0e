"""Groups of two: do they make training collapse, and what of it is the deviation they divide by?

Document 003 says that it is the advantages: with two rollouts in a group they are always +1 or -1.
What is done stands in `group_size_runs`; here is what is claimed of it, and what else was found.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.experiment import Experiment
from adapters.lab.experiments.group_size_figures import figures
from adapters.lab.experiments.group_size_runs import RATE, ROLLOUTS, cells, run
from adapters.lab.prediction import (
    Prediction,
    exact,
    first_number,
    mean_above,
    mean_unchanged,
    share_above,
    share_unchanged,
)

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
