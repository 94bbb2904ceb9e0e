"""From the measurements of a preflight to its findings and its verdict.

A finding is a sentence on what is wrong and one on what to change. One that makes training
pointless is a no-go; one that costs something is a warning, and its words say no more than that.
The limits are wide on purpose: a preflight is to stop the run that cannot learn, not the one that
will learn slowly, so a no-go needs a sample in which next to nothing works.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from adapters.training.algorithms.groups import SAME, group_size
from adapters.training.preflight.sample import SampleFigures
from adapters.training.settings import TrainSettings
from toolgym.rewards import RewardConfig
from toolgym.runs.files import plain

Level = Literal["no-go", "warn"]


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        check: What was looked at: `schemas`, `template`, `round_trip`, `tool_turn`, `room`, or a
            figure of the sample.
        level: Whether training is pointless with it, or only worse.
        reason: What was seen.
        advice: What to change.
    """

    check: str
    level: Level
    reason: str
    advice: str


@dataclass(frozen=True)
class Report:
    """All findings, and the figures that they were made of.

    Attributes:
        findings: In the order of the checks.
        figures: By name; None where there is nothing to be measured. Named as in `metrics.jsonl`
            where they are the same.
    """

    findings: tuple[Finding, ...]
    figures: Mapping[str, Any]

    @property
    def go(self) -> bool:
        """Nothing makes training pointless."""
        return all(finding.level != "no-go" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """`go` or `no-go`."""
        return "go" if self.go else "no-go"

    @property
    def reasons(self) -> list[str]:
        """Why it is a no-go, each with what to change; empty for a go."""
        stops = [finding for finding in self.findings if finding.level == "no-go"]
        return [f"{finding.check}: {finding.reason} {finding.advice}" for finding in stops]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data; a number that does not exist is None."""
        findings = [asdict(finding) for finding in self.findings]
        figures = plain(self.figures, "figures")
        return {"verdict": self.verdict, "findings": findings, "figures": figures}


@dataclass(frozen=True)
class Limits:
    """Where a figure of the sample becomes a finding.

    Attributes:
        validity: Below this share of turns with bound calls training is pointless.
        poor_validity: Below this it is worse.
        failures: Above this share of calls that end in an error it is pointless.
        many_failures: Above this it is worse.
        repairs: Above this number of repairs per call it is worse: each costs reward.
        unfinished: Above this share of rollouts that run out of tokens it is pointless.
        many_unfinished: Above this it is worse.
        answered: Below this share of episodes with an answer it is worse.
        lost: Above this share of wrong answers among the episodes that found the whole result it is
            worse: the form of the answer is not understood. Fewer than `found` are not judged.
        found: The number of such episodes from which on `lost` is judged.
        signal: Below this share of groups with different outcomes, at the group size of the run, it
            is pointless.
        live: Below this share of groups with right and wrong members it is worse.
        faults: Above this share of rollouts that the environment failed in, a run is stopped.
        entropy: Below this many nats per token the model hardly ever varies. Tiny models on tool
            calls are healthy at .05 to .08, so it is far below.
    """

    validity: float = 0.5
    poor_validity: float = 0.8
    failures: float = 0.5
    many_failures: float = 0.2
    repairs: float = 0.5
    unfinished: float = 0.5
    many_unfinished: float = 0.1
    answered: float = 0.8
    lost: float = 0.5
    found: int = 8
    signal: float = 0.1
    live: float = 0.5
    faults: float = 0.2
    entropy: float = 1e-3


def judge(
    figures: SampleFigures,
    numbers: Mapping[str, float],
    settings: TrainSettings,
    limits: Limits,
) -> Iterator[Finding]:
    """The findings of a sample.

    Args:
        numbers: Those of `found`, and `entropy` where it could be measured.
        limits: Where a figure becomes a finding.
    """
    if numbers["faults"] == numbers["rollouts"]:
        reason = "The environment failed in every rollout."
        yield Finding("faults", "no-go", reason, "Run `toolgym eval` on it to see why.")
        return
    if numbers["faults"]:
        reason = f"The environment failed in {numbers['faults']:.0f} rollouts."
        is_stopped = numbers["faults"] > limits.faults * numbers["rollouts"]
        advice = f"A run is stopped where it fails in more than {limits.faults:.0%}"
        advice += ": run `toolgym eval` on it to see why." if is_stopped else "."
        yield Finding("faults", _level(is_stopped), reason, advice)
    yield from _calls(figures, numbers, settings, limits)
    yield from _room(numbers, settings, limits)
    yield from _signal(figures, numbers, settings, limits)
    yield from _entropy(numbers, limits)


def _calls(
    figures: SampleFigures, numbers: Mapping[str, float], settings: TrainSettings, limits: Limits
) -> Iterator[Finding]:
    """Whether what the model writes is understood."""
    validity, failures = numbers["validity"], numbers["tool_failures"]
    advice = _format_advice(numbers, settings)
    seen = f"({_codes(figures.errors)}), as in {figures.example[:200]!r}."
    is_poor = not validity >= limits.poor_validity  # nan too: there was no turn at all
    is_hopeless = not validity >= limits.validity
    if is_poor:
        reason = f"{validity:.0%} of the turns hold calls that can be bound {seen}"
        yield Finding("validity", _level(is_hopeless), reason, advice)
    # A call that is not bound is a failure as well, so what follows from the first is not told.
    if not is_hopeless and failures > (limits.failures if is_poor else limits.many_failures):
        reason = f"{failures:.0%} of the calls end in an error {seen}"
        if not is_poor:
            advice = "The calls are well written and ask for the wrong things: warm the model up on"
            advice += " demonstrations, or begin with easier tasks."
        yield Finding("tool_failures", _level(failures > limits.failures), reason, advice)
    if numbers["repairs_per_call"] > limits.repairs:
        reason = (
            f"A call needs {numbers['repairs_per_call']:.2g} repairs ({_codes(figures.repairs)})."
        )
        reason += " The tools work all the same; each repaired call costs a little reward."
        yield Finding("repairs_per_call", "warn", reason, _format_advice(numbers, settings))


def _format_advice(numbers: Mapping[str, float], settings: TrainSettings) -> str:
    """Advice for calls that cannot be bound."""
    if numbers["null_arguments"] > 0.1:
        advice = (
            f"{numbers['null_arguments']:.0%} of the calls pass null for arguments, as a model does"
            " that learnt from data in which Arrow has padded every call: make demonstrations with"
            " `sft_dataset`, or give the column the feature type Json(), and warm up anew."
        )
        if settings.env_kwargs.get("parsing") == "strict":
            advice += ' parsing="strict" refuses such calls; take "lenient", which drops the nulls.'
        return advice
    if settings.env_kwargs.get("parsing") == "strict":
        return 'Take parsing="lenient", or warm the model up on demonstrations.'
    return "Warm the model up on demonstrations (more --demos and --sft-steps)."


def _room(
    numbers: Mapping[str, float], settings: TrainSettings, limits: Limits
) -> Iterator[Finding]:
    """Whether rollouts fit, and get to an answer."""
    unfinished, answered = numbers["unfinished"], numbers["answered"]
    if unfinished > limits.many_unfinished:
        level = _level(unfinished > limits.unfinished)
        reason = (
            f"{unfinished:.0%} of the rollouts run out of {settings.max_completion_length} tokens."
        )
        advice = "Raise --max-completion-length, or warm the model up so that it comes to an end."
        if not numbers["validity"] >= limits.validity:
            advice = "Rollouts may be shorter once their calls are understood: see `validity`."
        yield Finding("unfinished", level, reason, advice)
    elif answered < limits.answered:
        reason = f"Only {answered:.0%} of the episodes end with an answer."
        yield Finding("answered", "warn", reason, "Raise --step-limit, or warm the model up.")


def _signal(
    figures: SampleFigures, numbers: Mapping[str, float], settings: TrainSettings, limits: Limits
) -> Iterator[Finding]:
    """Whether tries at one task differ, so that there is something to prefer."""
    size = settings.group_size
    advice = size_advice(figures, limits.live)
    if numbers["reward_max"] - numbers["reward_min"] < SAME:
        reason = f"Every rollout earned {numbers['reward']:.3g}, so no gradient tells them apart."
        yield Finding("reward_spread", "no-go", reason, advice)
    elif size == 1:
        return  # tasks are compared with each other, not the tries of one
    elif figures.signal[size] < limits.signal:
        reason = f"{figures.signal[size]:.0%} of groups of {size} have members with different"
        yield Finding("signal", "no-go", f"{reason} outcomes.", advice)
    elif figures.live[size] < limits.live:
        reason = f"{figures.live[size]:.0%} of groups of {size} have right and wrong members;"
        reason += f" in {figures.signal[size]:.0%} the outcomes differ."
        yield Finding("live_groups", "warn", reason, advice)
    bins = RewardConfig.of(settings.env_kwargs.get("rewards")).bins
    found = [each for each in figures.records if each.answered and each.progress_bin >= bins]
    lost = sum(not record.correct for record in found)
    if len(found) >= limits.found and lost > limits.lost * len(found):
        reason = f"{lost / len(found):.0%} of the answers are judged wrong although the result had"
        advice = "Read some of them, for their form is not understood."
        yield Finding("answers", "warn", f"{reason} been found.", advice)


def size_advice(figures: SampleFigures, wanted: float) -> str:
    """Which group size to take, or why none would help.

    Args:
        wanted: The share of groups that should have right and wrong members.
    """
    if not figures.numbers["validity"]:
        return "No call of the model is understood, so it could not be right: see `validity`."
    return group_size(figures.counts, wanted=wanted).sentence


def _entropy(numbers: Mapping[str, float], limits: Limits) -> Iterator[Finding]:
    entropy = numbers.get("entropy")
    if entropy is None:
        return
    if not math.isfinite(entropy):
        reason = "The model's probabilities are not finite."
        yield Finding("entropy", "no-go", reason, "Load other weights, or another dtype.")
    elif entropy < limits.entropy:
        reason = f"Entropy is {entropy:.2g} nats per token: the model says nearly always the same."
        advice = "Raise the temperature, or take an earlier checkpoint of the warm-up."
        yield Finding("entropy", "warn", reason, advice)


def _level(is_hopeless: bool) -> Level:
    return "no-go" if is_hopeless else "warn"


def _codes(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {code}" for code, number in list(counted.items())[:3]) or "no call"
