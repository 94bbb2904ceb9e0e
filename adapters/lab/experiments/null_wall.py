"""Nulls in every call: with strict tools nothing can be learnt from it, with lenient ones it can.

Document 000 tells of calls that carried the arguments of all tools, null where they had none, and
were refused for it. Such calls come from demonstrations that a data set padded on the way.

What is done is a warm-up, clean or padded, and GRPO with tools that are strict or not. Arms that
begin with the same share of padding begin with the same weights. Their rewards look at the outcome
only, as the claim's did, or have the usual costs of calls, with or without a price on repairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from adapters.lab import cell_figures
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells, Prediction, mean_above, mean_unchanged
from adapters.lab.sql.tiny_grpo import NO_COSTS, TinyGrpo, lines, mean, sampled_score, told, train
from adapters.lab.sql.tiny_start import TinyStart, started

STEPS: Final = 30
LONG: Final = 100
TASKS: Final = 96
TRIES: Final = 2
"""Of each of the tasks on which the score is taken before and after."""
ENDS: Final = 5
"""Steps at the beginning and at the end that are compared."""
FREE: Final = {"repaired_call": 0.0}
"""The usual costs, but for a repair."""
_OUTCOME: Final = dict(NO_COSTS)
_ARMS: Final[Mapping[str, tuple[float, str, Any, int | None]]] = {
    "padded-strict": (1.0, "strict", _OUTCOME, None),
    "padded-lenient": (1.0, "lenient", _OUTCOME, None),
    "export-strict": (0.0, "strict", _OUTCOME, None),
    "half-priced": (0.5, "lenient", None, None),
    "half-free": (0.5, "lenient", FREE, None),
    "padded-priced": (1.0, "lenient", None, None),
    "padded-strict-long": (1.0, "strict", _OUTCOME, LONG),
    "padded-strict-priced-long": (1.0, "strict", None, LONG),
    "half-strict-long": (0.5, "strict", _OUTCOME, LONG),
    "half-priced-long": (0.5, "lenient", None, LONG),
    "half-free-long": (0.5, "lenient", FREE, LONG),
    "padded-priced-long": (1.0, "lenient", None, LONG),
}
"""Share that is padded, parsing, rewards (None: the usual ones), steps where they are others."""
SMOKE: Final = ("padded-strict", "padded-lenient", "export-strict")
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


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train once."""
    pair = started(TinyStart(**config["start"]), seed)
    env = {"parsing": config["parsing"], "rewards": config["rewards"]}
    grpo = TinyGrpo(config["steps"], env, config["trainer"])
    before = [weight.detach().clone() for weight in pair[0].parameters()]
    scores = [sampled_score(pair, env, config["tasks"], TRIES, seed)]
    history = train(pair, grpo, seed)
    scores.append(sampled_score(pair, env, config["tasks"], TRIES, seed))
    weights = zip(pair[0].parameters(), before, strict=True)
    record: dict[str, Any] = {
        "gradient_max": max(step["grad_norm"] for step in history),
        "weights_moved": max(float((now - then).detach().abs().max()) for now, then in weights),
        "zero_variance": told(mean(history, "zero_variance_groups")),
        "tool_failures": told(mean(history, "tool_failures")),
        "calls_clean": told(1.0 - mean(history, "nulls")),
    }
    record |= {"score_before": told(scores[0]), "score_after": told(scores[1])}
    record["score_gained"] = told(scores[1] - scores[0])
    for key in ("accuracy", "nulls", "repairs_per_call"):
        first, last = mean(history, key, first=ENDS), mean(history, key, last=ENDS)
        record |= {f"{key}_first": told(first), f"{key}_end": told(last)}
        record[f"{key}_gained"] = told(last - first)
    return record | lines(history, "reward", "nulls", "zero_variance_groups")


def cells(scale: Scale) -> dict[str, Config]:
    """At smoke size the wall and what undoes it; then the price of repairs."""
    return cells_of(scale, STEPS)


def cells_of(
    scale: Scale,
    steps: int,
    tasks: int = TASKS,
    size: Mapping[str, Any] = MappingProxyType({}),
    trainer: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Config]:
    """The cells at a size of one's own.

    Args:
        scale: Which cells.
        steps: Of GRPO.
        tasks: On which the score is taken before and after.
        size: Fields of `TinyStart`, over its own.
        trainer: Settings of the reference trainer, over the lab's.
    """

    configs: dict[str, Config] = {}
    for name, (padded, parsing, rewards, length) in _ARMS.items():
        if length is not None and scale != "full":
            continue
        if scale == "smoke" and name not in SMOKE:
            continue
        configs[name] = {
            "start": {**size, "padded": padded},
            "parsing": parsing,
            "rewards": rewards,
            "steps": length or steps,
            "tasks": tasks,
            "trainer": dict(trainer),
        }
    return configs


WALL: Final = {
    "padded, strict tools": "padded-strict",
    "padded, lenient tools": "padded-lenient",
    "safe export, strict tools": "export-strict",
}
PRICE: Final = {
    "half padded, repairs cost": "half-priced",
    "half padded, repairs are free": "half-free",
    "all padded, repairs cost": "padded-priced",
}


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    wall = cell_figures.lines(
        "null_wall_reward",
        "Reward after a padded warm-up",
        "Mean over seeds. With strict tools every rollout earns the same.",
        cells,
        WALL,
        "reward",
        unit="number",
    )
    price = cell_figures.lines(
        "null_wall_nulls",
        "Calls that write a null",
        "Share of calls, mean over seeds. A price can only choose among what is tried.",
        cells,
        PRICE,
        "nulls",
    )
    return [wall, price]


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
