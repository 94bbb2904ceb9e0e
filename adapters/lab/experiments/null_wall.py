"""Nulls in every call: with strict tools nothing can be learnt from it, with lenient ones it can.

Document 000 tells of calls that carried the arguments of all tools, null where they had none, and
were refused for it. Such calls come from demonstrations that a data set padded on the way. What is
done stands in `null_wall_runs`.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.experiment import Experiment
from adapters.lab.experiments.null_wall_figures import figures
from adapters.lab.experiments.null_wall_runs import LONG, STEPS, TASKS, TRIES, cells, run
from adapters.lab.prediction import Prediction, mean_above, mean_unchanged

PREDICTIONS: Final[tuple[Prediction, ...]] = (
    mean_above(
        "wall_is_level",
        "Refused for nulls, all rollouts of a group earn the same: in 99 % of the groups at least.",
        "padded-strict",
        "zero_variance",
        by=0.99,
        unit="share",
    ),
    mean_unchanged(
        "wall_has_no_gradient",
        "So the gradient is 0 at every step.",
        "padded-strict",
        "gradient_max",
        within=1e-6,
    ),
    mean_unchanged(
        "wall_stays",
        f"So nothing changes: no weight does in {STEPS} steps, and so none would in 351.",
        "padded-strict",
        "weights_moved",
        within=1e-6,
    ),
    mean_above(
        "lenient_has_signal",
        "Lenient tools drop the nulls; then members of groups differ: 30 points fewer are level.",
        "padded-strict",
        "zero_variance",
        than="padded-lenient",
        by=0.3,
        unit="share",
    ),
    mean_above(
        "lenient_earns",
        "From the same start, before any training, lenient tools earn 0.2 more.",
        "padded-lenient",
        "score_before",
        than="padded-strict",
        by=0.2,
    ),
    mean_above(
        "lenient_learns",
        f"And the score rises, by 0.05 in {STEPS} steps.",
        "padded-lenient",
        "score_gained",
        by=0.05,
    ),
    mean_above(
        "export_is_clean",
        "After an export that pads nothing, 95 % of the calls hold no null.",
        "export-strict",
        "calls_clean",
        by=0.95,
        unit="share",
    ),
    mean_above(
        "export_learns",
        f"And strict tools are no wall: the score rises, by 0.05 in {STEPS} steps.",
        "export-strict",
        "score_gained",
        by=0.05,
    ),
    mean_above(
        "price_ends_nulls",
        "Where half of the demonstrations are padded, a price on repairs brings repairs per call"
        " down, by 0.1 against none.",
        "half-free",
        "repairs_per_call_end",
        than="half-priced",
        by=0.1,
    ),
    mean_above(
        "price_ends_nulls_long",
        f"After {LONG} steps, which are done at full scale only, by 0.3.",
        "half-free-long",
        "repairs_per_call_end",
        than="half-priced-long",
        by=0.3,
    ),
    mean_unchanged(
        "price_needs_a_choice",
        "Where all are, it changes nothing: no call without nulls is ever tried. (The document"
        " expects that the reward alone teaches to leave them out.)",
        "padded-priced",
        "repairs_per_call_gained",
        within=0.05,
    ),
)


EXPERIMENT: Final = Experiment(
    name="null-wall",
    document="000",
    title="Nulls in every call",
    claim=(
        "Calls that carry the other tools' arguments as null were refused by strict tools: every"
        " rollout of a group earned 0, no advantage was left, and 351 steps changed nothing. Tools"
        " that ignore what they do not know undo it."
    ),
    setting=(
        "A tiny model imitates demonstrations on sqlgym/Explore-v0, exported by a data set that"
        " pads every call, or half of them, or by one that pads none; then GRPO (K=8, four"
        f" questions a step, no reference) for {STEPS} steps with strict or lenient tools, at full"
        f" scale also for {LONG}. Rewards look at the outcome only, as the document's did; where a"
        " repair has a price, they have all the usual costs. Scores are means over the same"
        f" {TASKS * TRIES} rollouts before and after."
    ),
    prevention=(
        "Tools drop what they do not know, record it as a repair and let it cost a little."
        " `sft_dataset` exports with a feature type that cannot be padded, its check fails on any"
        " null, and `toolgym preflight` says no-go where strict tools would refuse a model's"
        " calls."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 4, "full": 8},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 33.0 if config["steps"] == STEPS else 55.0,
)
