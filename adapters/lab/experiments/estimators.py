"""The estimators and losses of the field on workflows: which ends higher, and which fails less.

Document 003 puts four of them above GRPO. They train in three conditions:

| condition | rollouts of a step | rate   |                                             |
| --------- | ------------------ | ------ | ------------------------------------------- |
| `usual`   | 4 groups of 8      | 0.0001 | at which GRPO learns                        |
| `pairs`   | 16 groups of 2     | 0.0001 | the group size that is said to break GRPO   |
| `stress`  | 16 groups of 2     | 0.01   | and the rate at which trainings collapse    |

Every batch is learnt from twice, since at one update all ratios are 1 and the losses that bound
them do not differ. GSPO takes its ratios to the log-probabilities as they were drawn; on one
machine in float32 these are those of the learner to a hundred-thousandth, well inside its bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.cell_figures import grid, lines
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.micro.loop import MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import accuracy, entropy, examined
from adapters.lab.micro.tokens import CODE, LONGEST
from adapters.lab.prediction import Cells, Prediction, mean_above, mean_unchanged, share_above

PASSES: Final = 2
COLLAPSED: Final = 0.2
METHODS: Final[Mapping[str, Mapping[str, Any]]] = {
    "grpo": {"estimator": "group_normalized", "loss": "grpo"},
    "dr-grpo": {
        "estimator": "group_centered",
        "loss": "dr_grpo",
        "loss_changes": {"constant_length": LONGEST},
    },
    "reinforce++": {
        "estimator": "batch_normalized",
        "loss": "dapo",
        "loss_changes": {"epsilon_high": 0.2},
    },
    "reinforce++-baseline": {
        "estimator": "batch_normalized_baseline",
        "loss": "dapo",
        "loss_changes": {"epsilon_high": 0.2},
    },
    "rloo": {
        "estimator": "leave_one_out",
        "loss": "dapo",
        "loss_changes": {"epsilon_high": 0.2},
    },
    "gspo": {"estimator": "group_normalized", "loss": "gspo"},
    "dapo": {"estimator": "group_normalized", "loss": "dapo", "draws": 3.0},
    "cispo": {"estimator": "group_normalized", "loss": "cispo"},
}
"""Each with the loss that its paper has; where a paper is about advantages alone, the clipped loss
over all tokens."""
CONDITIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "usual": {"group_size": 8, "prompts": 4, "learning_rate": 1e-4},
    "pairs": {"group_size": 2, "prompts": 16, "learning_rate": 1e-4},
    "stress": {"group_size": 2, "prompts": 16, "learning_rate": 1e-2},
}
LABELS: Final = {
    "grpo": "GRPO",
    "dr-grpo": "Dr. GRPO",
    "reinforce++": "REINFORCE++",
    "reinforce++-baseline": "REINFORCE++ with baseline",
    "rloo": "RLOO",
    "gspo": "GSPO",
    "dapo": "DAPO",
    "cispo": "CISPO",
}
_SAID_BETTER: Final = ("reinforce++", "dr-grpo", "gspo", "dapo")
_OTHERS: Final = ("rloo", "cispo")


def _key(name: str) -> str:
    return name.replace("-", "_").replace("+", "p")


def _fails_less(name: str) -> Prediction:
    return share_above(
        f"{_key(name)}_fails_less",
        f"In pairs at a high rate {LABELS[name]} collapses less than GRPO, by 20 points.",
        "stress-grpo",
        "collapsed",
        than=f"stress-{name}",
        by=0.2,
    )


def _higher(name: str) -> Prediction:
    return mean_above(
        f"{_key(name)}_higher",
        f"In usual groups {LABELS[name]} ends with a higher score than GRPO, by 0.05.",
        f"usual-{name}",
        "score_end",
        than="usual-grpo",
        by=0.05,
    )


def _alike(name: str) -> Prediction:
    return mean_unchanged(
        f"{_key(name)}_alike",
        f"In usual groups {LABELS[name]}, of which nothing is claimed, ends as GRPO does.",
        f"usual-{name}",
        "score_end",
        than="usual-grpo",
        within=0.05,
    )


PREDICTIONS: Final[tuple[Prediction, ...]] = (
    *map(_fails_less, _SAID_BETTER),
    *map(_higher, _SAID_BETTER),
    *map(_alike, _OTHERS),
    mean_above(
        "global_is_best",
        "Normalising over the whole batch, called the best in theory, ends above normalising by"
        " group alone under stress, by 0.05.",
        "stress-reinforce++",
        "score_end",
        than="stress-grpo",
        by=0.05,
    ),
)


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train, and examine before and after."""
    settings = MicroConfig.of(config)
    trainer = Trainer(settings, start_of(settings, seed), seed)
    first = accuracy(examined(trainer, seed))
    history = [trainer.step() for _ in range(settings.updates)]
    last = examined(trainer, seed)
    valid = sum(ending.valid for ending in last.endings) / len(last.endings)
    return {
        "accuracy_first": first,
        "accuracy_end": accuracy(last),
        "gained": accuracy(last) - first,
        "score_end": sum(ending.score for ending in last.endings) / len(last.endings),
        "valid_end": valid,
        "collapsed": valid < COLLAPSED,
        "entropy_end": entropy(trainer.model, last),
        "rollouts": trainer.played,
        "score": [step["score"] for step in history],
    }


def cells(scale: Scale) -> dict[str, Config]:
    """Every method usually and under stress; at `full` in pairs too."""
    conditions = CONDITIONS if scale == "full" else ("usual", "stress")
    base = {"tasks": list(CODE), "passes": PASSES}
    return {
        f"{condition}-{name}": {**base, **METHODS[name], **CONDITIONS[condition]}
        for condition in conditions
        for name in METHODS
    }


_LINES: Final = ("grpo", "dr-grpo", "reinforce++", "gspo", "dapo", "cispo")
"""Six, since there are no more colours that everybody can tell apart."""


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [_scores(cells), _failures(cells), *(_training(cells, each) for each in CONDITIONS)]


def _rows() -> dict[str, list[str]]:
    return {each: [f"{each}-{name}" for name in METHODS] for each in CONDITIONS}


def _scores(cells: Cells) -> Figure:
    return grid(
        "estimators_score",
        "Score at the end",
        "Of 16 other rollouts of each task.",
        cells,
        _rows(),
        list(LABELS.values()),
        "score_end",
        unit="number",
    )


def _failures(cells: Cells) -> Figure:
    return grid(
        "estimators_failures",
        "Trainings that end with hardly anything valid",
        "Less than a fifth of what is written can be run.",
        cells,
        _rows(),
        list(LABELS.values()),
        "collapsed",
        counted=True,
    )


def _training(cells: Cells, condition: str) -> Figure:
    return lines(
        f"estimators_{condition}",
        f"Score while training, {condition}",
        "Mean over seeds. What DAPO keeps of its draws is no fair sample of them.",
        cells,
        {LABELS[name]: f"{condition}-{name}" for name in _LINES},
        "score",
        unit="number",
    )


EXPERIMENT: Final = Experiment(
    name="estimators",
    document="003",
    title="The estimators of the field, on workflows",
    claim=(
        "REINFORCE++ (normalising over everything), Dr. GRPO (no deviation), GSPO and DAPO are"
        " better than GRPO, whose deviation by group is the defect."
    ),
    setting=(
        "The workflow micro-model, paid the score of the episode, on the tasks of one kind, 60"
        f" steps of 32 rollouts (DAPO draws up to three times as many), {PASSES} updates each."
        " Usual: groups of 8 at a rate of 0.0001; under stress: pairs at 0.01. A training has"
        f" failed when less than {COLLAPSED:.0%} of what it writes at the end is valid. Every"
        " method has one rate, which was chosen for GRPO and not for the others."
    ),
    prevention=(
        "Each of them can be chosen in both trainers, so that the question can be asked of one's"
        " own task."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 24, "full": 48},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.6,
)
