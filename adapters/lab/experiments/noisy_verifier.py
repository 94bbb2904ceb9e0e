"""A verifier that is wrong now and then: what it does to learning, and whether an audit finds it.

Document 002 says that its false signals make dead groups worse, and asks for an audit.

The true verdict is that of the episode. The audit is that of `adapters.training.runs.audit`, with
its sample and its interval: rollouts that the training saw are judged again by the second rule of
the environment's family, which nobody has disturbed. It raises an alarm when the interval of the
agreement lies below what the rules agree on without noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.cell_figures import grid, lines
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.micro import measure, world
from adapters.lab.micro.loop import MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import NoisyVerifier, accuracy, examined
from adapters.lab.micro.tokens import CODE
from adapters.lab.prediction import Cells, Prediction, mean_above, share_above, share_unchanged
from adapters.training.runs.audit import Audit, Disagreement, sample

RATE: Final = 1e-4
NOISE: Final = (0.05, 0.1, 0.2)
AUDITED: Final = 200
AGREED: Final = 0.99
"""Agreement below which, with all of its interval, an alarm is raised."""
FIRST: Final = 10
_CLAIMED: Final = {"fp20": "20 % false positives", "fn20": "20 % false negatives"}
PREDICTIONS: Final[tuple[Prediction, ...]] = (
    *(
        mean_above(
            f"{cell}_costs_accuracy",
            f"With {words} a training ends less accurate, by 10 points.",
            "clean",
            "accuracy_end",
            than=cell,
            by=0.1,
            unit="share",
        )
        for cell, words in _CLAIMED.items()
    ),
    *(
        mean_above(
            f"{cell}_worsens_dead_groups",
            f"With {words} more groups are dead in the first ten steps, by 5 points.",
            cell,
            "dead_first",
            than="clean",
            by=0.05,
            unit="share",
        )
        for cell, words in _CLAIMED.items()
    ),
    mean_above(
        "lasting_errors_cost_more",
        "False positives that stay, of one workflow on one task, cost 5 points more than such as"
        " come and go: they can be learnt.",
        "fp20",
        "accuracy_end",
        than="fp20-fixed",
        by=0.05,
        unit="share",
    ),
    mean_above(
        "reward_lies",
        "With false positives that stay, 10 points more are called right at the end than are.",
        "fp20-fixed",
        "fooled",
        by=0.1,
        unit="share",
    ),
    *(
        share_above(
            f"audit_finds_{cell}",
            f"An audit of {AUDITED} rollouts finds {words}: alarms in 70 points more of"
            " the trainings than without noise.",
            cell,
            "audit_alarm",
            than="clean",
            by=0.7,
        )
        for cell, words in {"fp5": "5 % false positives", **_CLAIMED}.items()
    ),
    share_unchanged(
        "audit_knows_lasting",
        "It finds errors that stay as well as such as come and go.",
        "fp20-fixed",
        "audit_alarm",
        than="fp20",
        within=0.2,
    ),
)


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train on a verifier with errors, examine without, and audit what it said."""
    settings = MicroConfig.of(config)
    verifier = NoisyVerifier(
        config["false_positives"], config["false_negatives"], seed, fixed=config.get("fixed", False)
    )
    trainer = Trainer(settings, start_of(settings, seed), seed, play=verifier)
    first = accuracy(examined(trainer, seed, play=measure.once))
    history = [trainer.step() for _ in range(settings.updates)]
    found = audited(verifier, seed)
    last = accuracy(examined(trainer, seed, play=measure.once))
    called = accuracy(examined(trainer, seed))  # after the audit: it is none of the training's
    low, high = found.interval
    opening = history[:FIRST]
    return {
        "accuracy_first": first,
        "accuracy_end": last,
        "gained": last - first,
        "called_right_end": called,
        "fooled": called - last,
        "dead_first": sum(step["dead_groups"] for step in opening) / len(opening),
        "dead": sum(step["dead_groups"] for step in history) / len(history),
        "audit_agreement": found.agreement,
        "audit_low": low,
        "audit_high": high,
        "audit_decided": found.decided,
        "audit_alarm": high < AGREED,
        "false_positives_found": _found(found, recorded=True),
        "false_negatives_found": _found(found, recorded=False),
        "rewards": [step["accuracy"] for step in history],
    }


def audited(verifier: NoisyVerifier, seed: int, n: int = AUDITED) -> Audit:
    """Judge a sample of what the verifier has judged a second time."""
    chosen, rollouts = sample(verifier.said, n, seed)
    judged = [(each, world.second_verdict(*each[:3])) for each in chosen]
    decided = [(each, second) for each, second in judged if second is not None]
    return Audit(
        rollouts=rollouts,
        sampled=len(chosen),
        undecided=len(chosen) - len(decided),
        right=sum(each[3] for each, _ in decided),
        disagreements=tuple(
            Disagreement("grpo", None, str(each[1]), each[3], second, each[0], {})
            for each, second in decided
            if second != each[3]
        ),
    )


def _found(audit: Audit, *, recorded: bool) -> float | None:
    """Errors of one kind as a share of what was decided."""
    wrong = sum(each.recorded == recorded for each in audit.disagreements)
    return wrong / audit.decided if audit.decided else None


def cells(scale: Scale) -> dict[str, Config]:
    """Clean, the most of each error, and errors that stay; at `full` all rates of each."""
    base = {"tasks": list(CODE), "learning_rate": RATE}
    configs: dict[str, Config] = {"clean": {**base, "false_positives": 0.0, "false_negatives": 0.0}}
    for rate in NOISE if scale == "full" else (NOISE[0], NOISE[-1]):
        kinds = {
            "fp": {"false_positives": rate, "false_negatives": 0.0},
            "fn": {"false_positives": 0.0, "false_negatives": rate},
            "both": {"false_positives": rate, "false_negatives": rate},
        }
        for name, errors in kinds.items():
            for fixed in (False, True):
                ending = "-fixed" if fixed else ""
                cell = f"{name}{round(100 * rate)}{ending}"
                configs[cell] = {**base, **errors, "fixed": fixed}
    if scale == "full":
        return configs
    claimed = ("clean", "fp5", "fp20", "fn20", "both20", "fp20-fixed", "fn20-fixed")
    return {cell: configs[cell] for cell in claimed}


_KINDS: Final = {
    "false positives": ("fp", ""),
    "false negatives": ("fn", ""),
    "both": ("both", ""),
    "false positives, lasting": ("fp", "-fixed"),
    "false negatives, lasting": ("fn", "-fixed"),
}
_ROWS: Final = {
    label: ["clean", *(f"{name}{round(100 * rate)}{ending}" for rate in NOISE)]
    for label, (name, ending) in _KINDS.items()
}
_PLACES: Final = [f"{rate:.0%}" for rate in (0.0, *NOISE)]


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    return [_rewards(cells), _ends(cells), _dead(cells), _audits(cells)]


def _rewards(cells: Cells) -> Figure:
    shown = {"clean": "clean", "20% false positives": "fp20", "the same, lasting": "fp20-fixed"}
    return lines(
        "noisy_verifier_rewards",
        "What the verifier pays while training",
        "Share of rollouts that it calls right, mean over seeds.",
        cells,
        shown,
        "rewards",
    )


def _ends(cells: Cells) -> Figure:
    title, note = "True accuracy at the end, by the rate of errors", "Judged without noise."
    return grid("noisy_verifier_end", title, note, cells, _ROWS, _PLACES, "accuracy_end")


def _dead(cells: Cells) -> Figure:
    title = "Dead groups in the first ten steps, by the rate of errors"
    note = "All rollouts of the group have the same verdict."
    return grid("noisy_verifier_dead", title, note, cells, _ROWS, _PLACES, "dead_first")


def _audits(cells: Cells) -> Figure:
    title = "How often the second rule agrees, by the rate of errors"
    note = "In an audit of each training. Only wrong rollouts can be false positives."
    return grid("noisy_verifier_audit", title, note, cells, _ROWS, _PLACES, "audit_agreement")


EXPERIMENT: Final = Experiment(
    name="noisy-verifier",
    document="002",
    title="A verifier that is wrong now and then",
    claim=(
        "A noisy verifier injects false signals, which make advantage collapse worse; audit the"
        " reward before trusting it."
    ),
    setting=(
        "The workflow micro-model, paid 1 or 0 by the episode's verdict, which is turned round now"
        f" and then; 60 updates of 32 rollouts (K=8), rate {RATE:g}, tasks of one kind. Accuracy is"
        f" by the true verdict. The audit judges {AUDITED} of the rollouts again by the second rule"
        " of the environment, and raises an alarm when the whole interval of the agreement lies"
        f" below {AGREED:g}."
    ),
    prevention=(
        "`toolgym audit` judges the rollouts of a run again by a second rule, with an interval;"
        " golds with several right results are refused when tasks are loaded."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 24, "full": 48},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.1,
)
