"""Paying for text that is no workflow: does it make a model write prose, and does one update?

Document 003 says that valid workflows which earn little are pushed away, and prose, for which a
default workflow was run, is not. What is done stands in `fallback_runs`.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.experiment import Experiment
from adapters.lab.experiments.fallback_figures import figures
from adapters.lab.experiments.fallback_runs import RATES, cells, run
from adapters.lab.prediction import Prediction, mean_above, mean_unchanged, share_above

_UPDATE: Final = f"lr{RATES[0]:g}"
_LARGE_UPDATE: Final = f"lr{RATES[1]:g}"
PREDICTIONS: Final[tuple[Prediction, ...]] = (
    mean_above(
        "default_grows_prose",
        "Paid as the workflow `Custom`, as the original did, prose grows from its start.",
        "custom-std",
        "prose_grew",
        by=0.1,
        unit="share",
    ),
    mean_above(
        "typical_default_grows_prose",
        "Paid as the workflow that models write most, prose grows from its start.",
        "typical-std",
        "prose_grew",
        by=0.1,
        unit="share",
    ),
    mean_above(
        "default_ends_validity",
        "Paid as `Custom`, fewer of the texts at the end are workflows than paid 0, by 20 points.",
        "zero-std",
        "valid_end",
        than="custom-std",
        by=0.2,
        unit="share",
    ),
    mean_above(
        "typical_default_ends_validity",
        "The same where it is paid as the workflow that models write most.",
        "zero-std",
        "valid_end",
        than="typical-std",
        by=0.2,
        unit="share",
    ),
    mean_above(
        "default_keeps_prose",
        "Paid as the workflow that models write most, more prose is left than paid 0.",
        "typical-std",
        "prose_end",
        than="zero-std",
        by=0.1,
        unit="share",
    ),
    mean_unchanged(
        "zero_ends_prose",
        "Paid 0, prose goes away: less than 5 points are left.",
        "zero-std",
        "prose_end",
        within=0.05,
        unit="share",
    ),
    mean_unchanged(
        "skipping_changes_nothing",
        "Leaving out batches that are all fallback does not change how much prose is left.",
        "typical-std-skip",
        "prose_end",
        than="typical-std",
        within=0.1,
        unit="share",
    ),
    mean_above(
        "one_update_makes_prose",
        "One update on valid workflows of which some earn 0.2 makes prose likelier by 5 points.",
        f"step4-std-both-{_UPDATE}",
        "prose_change",
        by=0.05,
        unit="share",
    ),
    share_above(
        "one_update_collapses",
        "After that update most models hardly write a known workflow any more.",
        f"step4-std-both-{_UPDATE}",
        "known_collapsed",
        by=0.5,
    ),
    share_above(
        "large_update_collapses",
        "The same with a rate ten times higher.",
        f"step4-std-both-{_LARGE_UPDATE}",
        "known_collapsed",
        by=0.5,
    ),
    mean_above(
        "negatives_make_prose",
        "It is the negative advantages: without them prose gains less, by 5 points.",
        f"step4-std-both-{_UPDATE}",
        "prose_change",
        than=f"step4-std-positive-{_UPDATE}",
        by=0.05,
        unit="share",
    ),
    share_above(
        "negatives_collapse",
        "At the high rate it is the negative advantages: without them fewer collapse, by half.",
        f"step4-std-both-{_LARGE_UPDATE}",
        "known_collapsed",
        than=f"step4-std-positive-{_LARGE_UPDATE}",
        by=0.5,
    ),
    mean_above(
        "pushed_away",
        "The workflows that earn 0.2 beside one that earns 1 become less likely, by half a nat.",
        f"step4-std-both-{_UPDATE}",
        lambda record: -record["log_change_of_pushed_down"],
        by=0.5,
    ),
    mean_unchanged(
        "equal_rewards_teach_nothing",
        "A batch of 0.2 alone changes nothing, not even at the high rate.",
        f"low-std-both-{_LARGE_UPDATE}",
        "known_change",
        within=0.001,
    ),
)


EXPERIMENT: Final = Experiment(
    name="fallback",
    document="003",
    title="Paying for text that is no workflow",
    claim=(
        "Valid workflows that earn 0.2 beside others that earn 1 are pushed away, and the model"
        ' falls back to prose ("### Step 1"), which is not punished: the system ran a default'
        " workflow for it. Leaving out batches that are all fallback lets it recover in part."
    ),
    setting=(
        "The micro-model starts with 40 % prose and is trained for 60 updates of 32 rollouts (K=8),"
        " text that is no workflow earning what a default workflow earns, or 0. And single"
        f" updates (Adam, {RATES[0]:g} or {RATES[1]:g}) of a start with 5 % prose on six valid"
        " workflows of its own,"
        " with the exact probabilities of prose and of the 15 known workflows."
    ),
    prevention=(
        "What cannot be run is paid for what it reached, which is nothing, and never as something"
        " else; a batch in which nothing is valid is left out, and guards watch validity."
    ),
    cells=cells,
    seeds={"smoke": 2, "quick": 20, "full": 48},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.4 if config["what"] == "training" else 0.2,
)
