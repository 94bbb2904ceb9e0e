"""Before any GPU hour: can this model learn anything in this environment, with these settings?

Two stages. What can be read off without playing: do the tools have schemas, does the chat template
show them, in which format does it write calls, does an expert's transcript come back from text and
tokens as the calls it was made of, can results be appended to what was sampled, does an expert's
rollout fit. Then a sample of rollouts as training would play them: are calls understood, in which
format are they written, do tries at one task differ, how sure of itself is the model, what will a
step cost. A first stage that fails ends it, since rollouts in a broken format would tell of the
format only.

The model is left as it was, and so is PyTorch's random state; so a run that is preflighted has the
same numbers as one that is not.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.algorithms.groups import SIZES
from adapters.training.models.low_rank import Adapter
from adapters.training.models.tokenized_examples import Example, examples_of
from adapters.training.preflight.call_formats import (
    answer_formats,
    format_findings,
    template_format,
)
from adapters.training.preflight.chat_format import (
    Needs,
    check_prompt,
    check_rollouts,
    check_room,
    check_round_trip,
    check_schemas,
    completion_lengths,
    expert_transcripts,
    shows_arguments,
)
from adapters.training.preflight.judge import Finding, Limits, Report, judge, size_advice
from adapters.training.preflight.memory import check_dtype, check_memory, memory_needs
from adapters.training.preflight.sample import (
    AT_ONCE,
    SamplePlayed,
    entropy_of,
    figures_of,
    play_sample,
    update_seconds,
)
from adapters.training.runs.preparation import adapter_config
from adapters.training.runs.progress import ProgressListener
from adapters.training.settings import TrainSettings
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.runs.files import object_text, plain, read_object, replace_file
from toolgym.runs.run import Run

REPORT: Final = "preflight.json"
"""The file in a run folder."""


class NoGo(ConfigurationError):
    """A preflight says that training would be pointless; the message says why and what to change.

    Attributes:
        report: All that was found.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(
            "preflight says no-go, so nothing was trained:\n- " + "\n- ".join(report.reasons)
        )


@dataclass(frozen=True)
class Scope:
    """The size of the sample of a preflight.

    Attributes:
        tasks: Training tasks that are played.
        tries: Rollouts of each.
        transcripts: Of the expert, for the round trip.
        limits: Where a figure becomes a finding.
    """

    tasks: int = 16
    tries: int = 8
    transcripts: int = 8
    limits: Limits = field(default_factory=Limits)


def preflight(
    settings: TrainSettings,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    watch: ProgressListener,
    *,
    scope: Scope | None = None,
    needs: Needs | None = None,
) -> Report:
    """Look at everything and judge it.

    Args:
        settings: Of the training that is to come: environment, group size, prompts, temperature,
            room, seed, trainer.
        model: As reinforcement learning would begin with it.
        tokenizer: Its tokenizer.
        watch: Is told how far it is.
        scope: The size of the sample of a preflight.
        needs: Tries what the trainer needs of model and template; None leaves that out.

    Raises:
        ConfigurationError: The environment cannot be made, or no task of it is playable.
        EnvironmentFault: What an episode needs is not there.
    """
    scope = scope or Scope()
    if scope.tasks < 1 or scope.tries < 2 or scope.transcripts < 1:
        raise ConfigurationError("a preflight needs a task, two tries and a transcript at least.")
    env = registration.make(settings.env_id, **settings.training_kwargs)
    findings, figures = _before_playing(settings, env, model, tokenizer, scope, needs)
    report = Report(tuple(findings), figures)
    if not report.go:
        return report
    with watch.phase("preflight", scope.tasks * scope.tries) as advance:
        sample = play_sample(
            settings, model, tokenizer, scope.tasks, scope.tries, lambda done: advance(done, "")
        )
    stopped, measured = _after_playing(settings, env, model, tokenizer, scope, sample)
    return Report((*findings, *stopped), {**figures, **measured})


def before_training(
    run: Run,
    settings: TrainSettings,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    watch: ProgressListener,
    *,
    needs: Needs | None = None,
) -> Report | None:
    """The preflight of `toolgym train`, after the warm-up.

    The report is kept in the run folder as `preflight.json`. A run that is taken up again is looked
    at again only if it had not got past this.

    Returns:
        The report; None where an earlier one said go.

    Raises:
        NoGo: Training would be pointless.
        ConfigurationError: As `preflight`.
        EnvironmentFault: As `preflight`.
    """
    file = run.path / REPORT
    if file.is_file() and read_object(file).get("verdict") == "go":
        return None
    report = preflight(settings, model, tokenizer, watch, needs=needs)
    replace_file(file, [object_text(plain(report.to_json(), "preflight"))])
    if not report.go:
        raise NoGo(report)
    return report


def _before_playing(
    settings: TrainSettings,
    env: ToolEnv[Any],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    scope: Scope,
    needs: Needs | None,
) -> tuple[list[Finding], dict[str, Any]]:
    """The first stage."""
    env.reset(seed=settings.seed)
    findings = [*check_schemas(env), *check_prompt(env, tokenizer)]
    if findings:
        return findings, {}
    figures: dict[str, Any] = {"tools_shown": "schemas"}
    figures["template_format"] = template_format(tokenizer)
    if not shows_arguments(env, tokenizer):
        figures["tools_shown"] = "names"
    weights = sum(parameter.numel() for parameter in model.parameters())
    needed = memory_needs(settings, model.config, weights)
    if needed is not None:
        figures["memory_needed"] = needed.total
        held = sum(p.numel() * p.element_size() for p in model.parameters())
        findings += check_memory(needed, float(held))
    findings += check_dtype(str(model.dtype).removeprefix("torch."))
    if needs is not None:
        findings += check_rollouts(env, model, tokenizer, needs)
    transcripts = expert_transcripts(settings, env, scope.transcripts)
    findings += check_round_trip(env, transcripts, model, tokenizer)
    lengths = completion_lengths(transcripts, env, tokenizer)
    figures["expert_tokens"] = max(lengths, default=None)
    findings += check_room(settings, env, model, tokenizer, lengths)
    return findings, figures


def _after_playing(
    settings: TrainSettings,
    env: ToolEnv[Any],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    scope: Scope,
    sample: SamplePlayed,
) -> tuple[list[Finding], dict[str, Any]]:
    """The second stage."""
    sample_figures = figures_of(sample, sorted({*SIZES, max(2, settings.group_size)}))
    examples = list(_examples(sample, env, tokenizer))
    costs = _costs(settings, model, sample, examples)
    turns = (turn for played in sample.rollouts for turn in played.record.turns)
    answers = answer_formats(turns, env.tools)
    numbers = {**sample_figures.numbers, **({"entropy": costs["entropy"]} if examples else {})}
    figures = {
        "tasks": len(sample_figures.counts),
        "tries": sample.tries,
        **sample_figures.numbers,
        "signal": sample_figures.signal,
        "live_groups": sample_figures.live,
        "group_size_advice": size_advice(sample_figures, scope.limits.live),
        "errors": sample_figures.errors,
        "repairs": sample_figures.repairs,
        **answers.figures,
        **costs,
    }
    findings = list(judge(sample_figures, numbers, settings, scope.limits))
    findings += format_findings(template_format(tokenizer), answers)
    if examples and math.isnan(costs["update_seconds"]):
        reason = f"Forward and backward over {AT_ONCE} transcripts do not fit into memory."
        advice = "Turn gradient checkpointing on, or lower --max-completion-length."
        findings.append(Finding("memory", "warn", reason, advice))
    return findings, figures


def _examples(
    sample: SamplePlayed, env: ToolEnv[Any], tokenizer: PreTrainedTokenizerBase
) -> Iterator[Example]:
    """The sample as tokens; none where the template renders no turn after its prompt."""
    for played in sample.rollouts:
        try:
            yield from examples_of(played.messages, env.tool_schemas(), tokenizer)
        except ConfigurationError:
            return


def _costs(
    settings: TrainSettings,
    model: PreTrainedModel,
    sample: SamplePlayed,
    examples: Sequence[Example],
) -> dict[str, float]:
    """Entropy, and the seconds of a step and of its two parts."""
    rollouts = settings.group_size * settings.prompts
    playing = statistics.median(sample.batch_seconds) * rollouts / sample.batch
    update = _update_seconds(settings, model, examples, rollouts)
    return {
        "entropy": entropy_of(model, examples, settings.temperature) if examples else math.nan,
        "rollout_seconds": playing,
        "update_seconds": update,
        "seconds_per_step": playing + update,
    }


def _update_seconds(
    settings: TrainSettings, model: PreTrainedModel, examples: Sequence[Example], rollouts: int
) -> float:
    """The same with an adapter where one will be trained: without, it takes twice the memory."""
    config = adapter_config(settings)
    if config is None:
        return update_seconds(model, examples, rollouts)
    adapter = Adapter(model, config)
    try:
        return update_seconds(model, examples, rollouts)
    finally:
        adapter.remove()
