"""What `noisy_verifier` does: trainings whose verifier is wrong now and then, and their audit.

The true verdict is that of the episode. The audit is that of `adapters.training.audit`, with its
sample and its interval: rollouts that the training saw are judged again by the second rule of the
environment's family, which nobody has disturbed. It raises an alarm when the interval of the
agreement lies below what the rules agree on without noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.experiment import Config, Scale
from adapters.lab.micro import exams, world
from adapters.lab.micro.exams import NoisyVerifier
from adapters.lab.micro.loop import MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import accuracy, examined
from adapters.lab.micro.tokens import CODE
from adapters.training.audit import Audit, Disagreement, sample

RATE: Final = 1e-4
NOISE: Final = (0.05, 0.1, 0.2)
AUDITED: Final = 200
AGREED: Final = 0.99
"""Agreement below which, with all of its interval, an alarm is raised."""
FIRST: Final = 10


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train on a verifier with errors, examine without, and audit what it said."""
    settings = MicroConfig.of(config)
    verifier = NoisyVerifier(
        config["false_positives"], config["false_negatives"], seed, fixed=config.get("fixed", False)
    )
    trainer = Trainer(settings, start_of(settings, seed), seed, play=verifier)
    first = accuracy(examined(trainer, seed, play=exams.once))
    history = [trainer.step() for _ in range(settings.updates)]
    found = audited(verifier, seed)
    last = accuracy(examined(trainer, seed, play=exams.once))
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
    """Judge a sample of what the verifier has judged a second time.

    Args:
        verifier: After a training.
        seed: Of the sample.
        n: Rollouts at most.
    """
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
    found: dict[str, Config] = {"clean": {**base, "false_positives": 0.0, "false_negatives": 0.0}}
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
                found[cell] = {**base, **errors, "fixed": fixed}
    if scale == "full":
        return found
    kept = ("clean", "fp5", "fp20", "fn20", "both20", "fp20-fixed", "fn20-fixed")
    return {cell: found[cell] for cell in kept}
