"""What `null-wall` does: a warm-up, clean or padded, and GRPO with tools that are strict or not.

Arms that begin with the same share of padding begin with the same weights. Their rewards look at
the outcome only, as the claim's did, or have the usual costs of calls, with or without a price on
repairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from adapters.lab.experiment import Config, Scale
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

    found: dict[str, Config] = {}
    for name, (padded, parsing, rewards, length) in _ARMS.items():
        if length is not None and scale != "full":
            continue
        if scale == "smoke" and name not in SMOKE:
            continue
        found[name] = {
            "start": {**size, "padded": padded},
            "parsing": parsing,
            "rewards": rewards,
            "steps": length or steps,
            "tasks": tasks,
            "trainer": dict(trainer),
        }
    return found
