"""Paying for text that is no workflow: does it make a model write prose, and does one update?

Document 003 says that valid workflows which earn little are pushed away, and prose, for which a
default workflow was run, is not.

In a training, which begins with much prose, text that is no workflow earns what a default workflow
would have, or 0. A single update is made on a batch of valid workflows that are paid as in the
claim's example; the probabilities of prose and of known workflows before and after it are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from adapters.lab.cell_figures import grid, lines, points
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.micro import world
from adapters.lab.micro.loop import Batch, MicroConfig, Trainer, mean, train
from adapters.lab.micro.measure import known_workflows, prose_probability
from adapters.lab.micro.model import MicroModel, Sampled, prompts_of, read
from adapters.lab.micro.start import started
from adapters.lab.prediction import Cells, Prediction, mean_above, mean_unchanged, share_above
from toolgym.errors import EnvironmentFault

PROSE: Final = 0.4
"""Share of prose of the start in trainings: 42.8 % of the outputs of the claim's run."""
PAID: Final[Mapping[str, tuple[float, ...]]] = {
    "step4": (1.0, 1.0, 1.0, 0.2, 0.2, 0.2),
    "low": (0.2,) * 6,
}
"""Rewards of three groups of two: the example of the claim, and a batch of 0.2 alone."""
ESTIMATORS: Final[Mapping[str, str]] = {
    "std": "group_normalized",
    "none": "group_centered",
    "loo": "leave_one_out",
    "scaled": "batch_scaled",
    "batch": "batch_normalized",
}
RATES: Final = (1e-3, 1e-2)
"""Of the one update: a usual one, and the one at which trainings of `group-size` collapse."""
DEFAULTS: Final = {"custom": "Custom", "typical": "Custom -> Programmer -> Review ? Revise : done"}
"""What text that is no workflow is paid as: the original's own, and what its models wrote most."""
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


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A training, or one update."""
    settings = MicroConfig.of(config)
    if config["what"] == "update":
        return _one_update(settings, PAID[config["paid"]], seed)
    history, _ = train(settings, seed)
    prose = [step["prose"] for step in history]
    return {
        "prose_first": prose[0],
        "prose_end": mean(history, "prose", 10),
        "prose_grew": mean(history, "prose", 10) - prose[0],
        "valid_end": mean(history, "valid", 10),
        "score_end": mean(history, "score", 10),
        "became_prose": mean(history, "prose", 10) > 0.8,
        "skipped": 1 - mean(history, "updated"),
        "prose": prose,
        "valid": [step["valid"] for step in history],
    }


def _one_update(config: MicroConfig, paid: tuple[float, ...], seed: int) -> dict[str, Any]:
    """Update once on a batch of valid workflows that are paid so."""
    model = started(seed, config.start_prose, config.start_steps)
    trainer = Trainer(config, model, seed)
    batch = _valid_batch(trainer, paid)
    lead = trainer.advantages(batch)
    before, bad = _probabilities(model), lead < 0
    texts_before = _of_texts(model, batch.sampled)
    if bool(lead.any()):
        trainer.update(batch.sampled, lead)
    after, moved = _probabilities(model), _of_texts(model, batch.sampled) - texts_before
    return {
        "prose_before": before[0],
        "prose_after": after[0],
        "prose_change": after[0] - before[0],
        "known_before": before[1],
        "known_after": after[1],
        "known_change": after[1] - before[1],
        "known_collapsed": after[1] < 0.2,
        "pushed_down": int(bad.sum()),
        "log_change_of_pushed_down": float(moved[bad].mean()) if bool(bad.any()) else None,
        "learnt": bool(lead.any()),
    }


def _valid_batch(trainer: Trainer, paid: tuple[float, ...]) -> Batch:
    """Valid workflows that the model itself writes, two for each of three tasks, paid as told.

    Raises:
        EnvironmentFault: The model hardly writes any.
    """
    wanted = len(paid) // trainer.config.group_size
    rows: list[int] = []
    batch = trainer.rollouts([i for i in range(wanted) for _ in range(16)])
    for task in range(wanted):
        found = [i for i, t in enumerate(batch.tasks) if t == task and batch.endings[i].valid]
        rows += found[: trainer.config.group_size]
    if len(rows) < len(paid):
        raise EnvironmentFault("the start writes too few valid workflows for a batch of them.")
    return Batch(
        Sampled(*(table[rows] for table in batch.sampled)),
        [batch.texts[row] for row in rows],
        [batch.tasks[row] for row in rows],
        [batch.endings[row] for row in rows],
        list(paid),
        trainer.config.group_size,
    )


@torch.no_grad()
def _probabilities(model: MicroModel) -> tuple[float, float]:
    """Of prose, and of any known workflow: means over all tasks, exact."""
    prompts = prompts_of(list(range(world.TASKS)))
    return float(prose_probability(model, prompts).mean()), float(
        known_workflows(model, prompts).mean()
    )


@torch.no_grad()
def _of_texts(model: MicroModel, sampled: Sampled) -> Tensor:
    """Log-probability of each text, in nats: [N]."""
    found = read(model, sampled).logprobs
    return torch.where(sampled.mask, found, 0.0).sum(dim=1)


def cells(scale: Scale) -> dict[str, Config]:
    """The cells that the claims need; at `full` all estimators, with and without skipping."""
    everything = scale == "full"
    base = {"what": "training", "rewards": "levels", "start_prose": PROSE, "learning_rate": 1e-3}
    configs: dict[str, Config] = {}
    for name in ESTIMATORS if everything else ("std",):
        for paid, workflow in (("zero", None), *DEFAULTS.items()):
            own = {**base, "estimator": ESTIMATORS[name], "fallback": workflow}
            configs[f"{paid}-{name}"] = own
            if everything or paid == "typical":
                configs[f"{paid}-{name}-skip"] = {**own, "skip_fallback": True}
    update = {"what": "update", "group_size": 2, "prompts": 3}
    # A first step of Adam has one size: with one live group, all that centre by group are the same.
    for name in ESTIMATORS if everything else ("std", "batch"):
        estimator = ESTIMATORS[name]
        for rate in RATES:
            own = {**update, "estimator": estimator, "learning_rate": rate, "paid": "step4"}
            configs[f"step4-{name}-both-lr{rate:g}"] = own
            configs[f"step4-{name}-positive-lr{rate:g}"] = {**own, "negatives": False}
        if everything or name == "std":
            configs[f"low-{name}-both-lr{RATES[1]:g}"] = {**own, "paid": "low"}
    return configs


_PAID_AS: Final = {"0": "zero-std", "Custom": "custom-std", "the typical one": "typical-std"}
TRAININGS: Final = {
    "paid as Custom": "custom-std",
    "paid as what is typical": "typical-std",
    "paid 0": "zero-std",
    "typical, batches skipped": "typical-std-skip",
}


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    prose = lines(
        "fallback_prose",
        "Prose while training",
        "Share of completions that begin as prose, mean over seeds.",
        cells,
        TRAININGS,
        "prose",
    )
    valid = lines(
        "fallback_valid",
        "Workflows while training",
        "Share of completions that are a workflow, mean over seeds.",
        cells,
        TRAININGS,
        "valid",
    )
    return [_ends(cells), prose, valid, _updates(cells)]


def _ends(cells: Cells) -> Figure:
    return points(
        "fallback_ends",
        "What is written at the end, by what other text is paid",
        "Of the last ten batches. What is neither is text that no longer reads as a workflow.",
        cells,
        _PAID_AS,
        {"workflows": "valid_end", "prose": "prose_end"},
    )


def _updates(cells: Cells) -> Figure:
    signs = {"with negative advantages": "both", "without": "positive"}
    return grid(
        "fallback_update",
        "Probability of prose: change by one update",
        "Three groups of two valid workflows, paid 1, 1 | 1, 0.2 | 0.2, 0.2.",
        cells,
        {
            label: [f"step4-{name}-{sign}-{_UPDATE}" for name in ESTIMATORS]
            for label, sign in signs.items()
        },
        list(ESTIMATORS),
        "prose_change",
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
