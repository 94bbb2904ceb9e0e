"""By what to divide the sum over tokens: do long texts lose where each rollout counts the same?

Document 002 says so of long reasoning, and that dividing by all tokens of a step mends it.
Trainings divide the sum over tokens in three ways, in three worlds:

| world    | what is paid                                                                      |
| -------- | --------------------------------------------------------------------------------- |
| `qa`     | the score of the episode, on tasks for which the longest workflow shown is best   |
| `longer` | the length itself, of whatever can be run                                         |
| `chance` | nothing but luck: a length that changes here is a bias of the normalisation       |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from adapters.lab.cell_figures import grid, lines
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.micro.loop import Batch, MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import PLAYS, accuracy, examined, text_probabilities
from adapters.lab.micro.model import prompts_of
from adapters.lab.micro.tokens import ITEMS, KINDS, LONGEST, WORKFLOWS, tokens_of
from adapters.lab.prediction import Cells, Prediction, mean_above, mean_unchanged

RATE: Final = 1e-4
STEP: Final = 0.05
"""Length of a matched step."""
LONG: Final = max(WORKFLOWS, key=lambda text: len(tokens_of(text)))
QA: Final = tuple(range((len(KINDS) - 1) * ITEMS, len(KINDS) * ITEMS))
WORLDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "qa": {"play": "real", "tasks": list(QA)},
    "longer": {"play": "longer", "tasks": list(QA)},
    "chance": {"play": "chance", "tasks": list(QA)},
}
NORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "sample": {"aggregation": "sample"},
    "token": {"aggregation": "token"},
    "constant": {"aggregation": "constant", "constant_length": LONGEST},
}
PREDICTIONS: Final[tuple[Prediction, ...]] = (
    mean_above(
        "token_writes_longer",
        "Where the longest workflow is the best, per-token training ends with longer texts than"
        " per-sample, by a token.",
        "qa-token",
        "length_end",
        than="qa-sample",
        by=1.0,
    ),
    mean_above(
        "token_scores_more",
        "There it ends with a higher score, by 0.05.",
        "qa-token",
        "score_end",
        than="qa-sample",
        by=0.05,
    ),
    mean_above(
        "token_finds_long",
        "There the longest workflow is likelier at the end, by 10 points.",
        "qa-token",
        "long_end",
        than="qa-sample",
        by=0.1,
        unit="share",
    ),
    mean_above(
        "token_grows_when_paid",
        "Paid for length alone, per-token training ends with longer texts, by a token.",
        "longer-token",
        "length_end",
        than="longer-sample",
        by=1.0,
    ),
    mean_above(
        "sample_shortens",
        "Paid by luck alone, per-sample training ends with shorter texts, by half a token.",
        "chance-token",
        "length_end",
        than="chance-sample",
        by=0.5,
    ),
    mean_unchanged(
        "token_unbiased",
        "Paid by luck alone, per-token training leaves the length as it is, within half a token.",
        "chance-token",
        "length_grew",
        within=0.5,
    ),
    mean_unchanged(
        "constant_as_token",
        "A constant divisor ends with texts as long as per-token, within a token.",
        "qa-constant",
        "length_end",
        than="qa-token",
        within=1.0,
    ),
)


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train, and follow the length of what is written."""
    settings = MicroConfig.of(config)
    trainer = Trainer(settings, start_of(settings, seed), seed, play=PLAYS[config["play"]])
    first, before = examined(trainer, seed), _long(trainer)
    history = [trainer.step() for _ in range(settings.updates)]
    last = examined(trainer, seed)
    return {
        "length_first": _length(first),
        "length_end": _length(last),
        "length_grew": _length(last) - _length(first),
        "score_end": _score(last),
        "accuracy_end": accuracy(last),
        "valid_end": sum(each.valid for each in last.endings) / len(last.endings),
        "long_first": before,
        "long_end": _long(trainer),
        "grad_norm_first": history[0].get("grad_norm"),
        "lengths": [step["length"] for step in history],
    }


def _length(batch: Batch) -> float:
    """Tokens of a completion."""
    return float(batch.sampled.mask.sum()) / len(batch.texts)


def _score(batch: Batch) -> float:
    return sum(ending.score for ending in batch.endings) / len(batch.endings)


@torch.no_grad()
def _long(trainer: Trainer) -> float:
    """How likely the longest known workflow is: exact, mean over the tasks."""
    prompts = prompts_of(list(trainer.config.tasks))
    return float(text_probabilities(trainer.model, prompts, [LONG]).mean())


def cells(scale: Scale) -> dict[str, Config]:
    """Every world and normalisation; at `full` also unscaled advantages and steps of one length."""
    kinds: dict[str, Mapping[str, Any]] = {"": {"learning_rate": RATE}}
    if scale == "full":
        kinds["-centred"] = {"learning_rate": RATE, "estimator": "group_centered"}
        kinds["-matched"] = {"learning_rate": STEP, "optimizer": "matched"}
    return {
        f"{world}-{norm}{kind}": {**WORLDS[world], **more, "loss_changes": dict(NORMS[norm])}
        for world in WORLDS
        for norm in NORMS
        for kind, more in kinds.items()
    }


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [
        *(_while_training(cells, world) for world in WORLDS),
        _lengths(cells),
        _long_ones(cells),
    ]


def _while_training(cells: Cells, world: str) -> Figure:
    return lines(
        f"length_{world}",
        f"Tokens of a text while training, world {world}",
        "Mean over seeds.",
        cells,
        {f"per {norm}" if norm != "constant" else norm: f"{world}-{norm}" for norm in NORMS},
        "lengths",
        unit="number",
    )


def _lengths(cells: Cells) -> Figure:
    return grid(
        "length_end",
        "Tokens of a text at the end",
        "Of other rollouts of the same tasks.",
        cells,
        {norm: [f"{world}-{norm}" for world in WORLDS] for norm in NORMS},
        list(WORLDS),
        "length_end",
        unit="number",
    )


def _long_ones(cells: Cells) -> Figure:
    return grid(
        "length_long",
        "Probability of the longest known workflow at the end",
        "Exact, mean over tasks. In the world qa it is the best of those that are shown.",
        cells,
        {norm: [f"{world}-{norm}" for world in WORLDS] for norm in NORMS},
        list(WORLDS),
        "long_end",
    )


EXPERIMENT: Final = Experiment(
    name="length",
    document="002",
    title="By what the sum over tokens is divided",
    claim=(
        "Dividing by each rollout's own length works against long reasoning; dividing by all"
        " tokens of a step weights longer traces as they should be."
    ),
    setting=(
        f"The workflow micro-model, 60 updates of 32 rollouts (K=8), rate {RATE:g}, on tasks for"
        f' which the longest of its workflows is the best of them, "{LONG}". Paid: the score of the'
        " episode; the length"
        " alone; or nothing but luck. Adam hides a constant factor of the loss, so that only the"
        " weights of tokens against each other differ."
    ),
    prevention=(
        "The default loss divides by all tokens of a step; per rollout and by a constant are"
        " settings."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 24, "full": 48},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.3,
)
