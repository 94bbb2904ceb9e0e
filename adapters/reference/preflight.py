"""Preflight: check before training whether a model can learn in an environment.

Before playing, the preflight checks the tools, the chat template, the transcripts of the expert,
the context length and the data type. It then plays several rollouts of some training tasks in the
same way as in training. It measures the time and memory of an update by making one with a learning
rate of 0. Finally, the preflight looks for problems in the metrics of the rollouts and gives a
verdict.

A finding describes a problem and its solution. A no-go means that training would be pointless; a
warning means that training would work, but less well than it could. The limits are lenient: they
reject models that cannot learn, not models that learn slowly. docs/guards.md lists the limits in
one table.

The preflight changes neither PyTorch's random state nor the model, except that it enables gradient
checkpointing if training does. Therefore a run has the same results with and without a preflight.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any, Final, Literal

import torch
from jinja2 import TemplateError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.play import Player, Rollout
from adapters.training.algorithms.groups import by_group, group_size_advice, mixed_share
from adapters.training.algorithms.rollout_metrics import batch_metrics
from adapters.training.models.demonstrations import demonstrate, playable_tasks
from adapters.training.models.low_rank import Adapter
from adapters.training.models.master_weights import MasterAdamW
from adapters.training.models.token_log_probs import passes, token_log_probs
from adapters.training.models.tokenized_examples import Example, examples_of
from adapters.training.models.weights import make_ready, multiplies_bfloat16, release_memory
from adapters.training.runs.preparation import adapter_config
from adapters.training.runs.progress import ProgressListener, peak_memory
from adapters.training.settings import TrainSettings
from toolgym import registration
from toolgym.calls import parse_calls
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.generation import context_length, stop_ids
from toolgym.intervals import wilson_interval
from toolgym.messages import prompt_messages
from toolgym.runs.files import object_text, plain, read_object, replace_file
from toolgym.runs.run import Run

Level = Literal["no-go", "warn"]
REPORT: Final = "preflight.json"
"""Name of the report file in a run folder."""

_TRANSCRIPTS: Final = 8  # transcripts of the expert
_ENOUGH: Final = 64  # scored rollouts of which one should be correct
_SMALL: Final = 10**7  # parameters; a smaller model was trained from scratch
_EXCERPT: Final = 400  # characters of a rendered text in a finding
_NULL: Final = re.compile(r"\b(?:null|None)\b")
_NULL_ARGUMENT: Final = re.compile(r"[:=]\s*(?:null|None)\b")
_OTHER_TEMPLATE: Final = (
    "Pass --chat-template hermes, which shows the tools to any model, or use a tokenizer with the"
    " chat template of a tool-calling model."
)


@dataclass(frozen=True)
class Finding:
    """A problem that the preflight found.

    Attributes:
        check: Name of the check: `template`, `tool_turn`, `round_trip`, `room`, `dtype`, `memory`,
            or the metric that exceeds its limits.
        level: `no-go` if training would be pointless, `warn` if training would work less well than
            it could.
        reason: What was observed.
        advice: What to change.
    """

    check: str
    level: Level
    reason: str
    advice: str


@dataclass(frozen=True)
class Report:
    """The result of a preflight.

    Attributes:
        findings: Findings in the order of the checks.
        figures: Measurements by name. Metrics of rollouts are named as in `metrics.jsonl`. The
            mapping is empty if no rollouts were played because of a finding.
    """

    findings: tuple[Finding, ...]
    figures: Mapping[str, Any]

    @property
    def go(self) -> bool:
        """Whether no finding is a no-go."""
        return all(finding.level != "no-go" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The verdict, `go` or `no-go`."""
        return "go" if self.go else "no-go"

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data. Nonfinite numbers become None."""
        return {"verdict": self.verdict, **plain(asdict(self), "preflight")}


class NoGo(ConfigurationError):
    """Exception for a model for which training would be pointless.

    The message contains the reasons and advice.

    Attributes:
        report: The report of the preflight.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        lines = [f"{f.check}: {f.reason} {f.advice}" for f in report.findings if f.level != "warn"]
        reasons = "\n- ".join(lines)
        super().__init__(
            f"the preflight found a no-go, so the training did not start:\n- {reasons}"
        )


def before_training(
    run: Run,
    settings: TrainSettings,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    watch: ProgressListener,
) -> Report | None:
    """Check a model before its reinforcement learning, and write the report into the run folder.

    Returns:
        The report, or None if an earlier preflight of this run had the verdict `go`.

    Raises:
        NoGo: If training would be pointless.
        ConfigurationError: If the environment cannot be made, or none of its tasks is playable.
        EnvironmentFault: If the environment cannot start an episode.
    """
    file = run.path / REPORT
    if file.is_file() and read_object(file).get("verdict") == "go":
        return None
    report = preflight(settings, model, tokenizer, watch)
    replace_file(file, [object_text(report.to_json())])
    if not report.go:
        raise NoGo(report)
    return report


def preflight(
    settings: TrainSettings,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    watch: ProgressListener,
    *,
    tasks: int = 16,
    tries: int = 8,
) -> Report:
    """Check whether a model can learn in an environment.

    Args:
        settings: Settings of the planned training.
        model: The model at the start of reinforcement learning.
        tokenizer: Tokenizer of the model.
        watch: Listener for the progress.
        tasks: Number of training tasks to play.
        tries: Number of rollouts of each task, at least 2.

    Raises:
        ConfigurationError: If the environment cannot be made, or none of its tasks is playable.
        EnvironmentFault: If the environment cannot start an episode.
    """
    if tries < 2:
        raise ConfigurationError(f"tries must be at least 2, got {tries}.")
    env = registration.make(settings.env_id, **settings.training_kwargs)
    task_ids = playable_tasks(env.tasks, tasks, settings.seed).ids
    findings = list[Finding]()
    if model.dtype == torch.bfloat16 and not multiplies_bfloat16():
        reason = "The model computes in bfloat16, but this machine has no instructions for it:"
        reason += " matrix products can take fifty times as long as in float32."
        advice = "Use --dtype auto or --dtype float32."
        findings.append(Finding("dtype", "warn", reason, advice))
    try:
        player = Player(model, tokenizer, settings.env_id, settings.training_kwargs)
        player.check(task_ids[0], with_model=settings.trainer == "reference")
    except ConfigurationError as problem:
        reason = f"The trainers cannot use this model: {problem}"
        return Report((*findings, Finding("tool_turn", "no-go", reason, _OTHER_TEMPLATE)), {})
    findings += template_findings(player.env, tokenizer)
    length = settings.max_completion_length
    room = min(length, context_length(model) - player.prompt_length(task_ids[0]))
    findings += expert_findings(settings, player.env, model, tokenizer, room)
    if not (report := Report(tuple(findings), {})).go:
        return report

    batch = settings.group_size * settings.prompts
    rollouts = [
        Rollout(task_id, group, f"preflight-{settings.seed}-{number}")
        for group, task_id in enumerate(task_ids)
        for number in range(tries)
    ]
    began = time.monotonic()
    with watch.phase("preflight", len(rollouts)) as advance:
        for start in range(0, len(rollouts), batch):
            chunk = rollouts[start : start + batch]
            player.play(chunk, max_tokens=length, temperature=settings.temperature)
            advance(start + len(chunk), "")
    playing, right = (time.monotonic() - began) * batch / len(rollouts), math.nan
    if settings.evaluation_kwargs != settings.training_kwargs:
        measured = settings.evaluation_kwargs
        other = Player(model, tokenizer, settings.env_id, measured, engine=player.engine)
        others = itertools.cycle(playable_tasks(other.env.tasks, len(rollouts), settings.seed).ids)
        held_out = [Rollout(next(others), 0, f"held-out-{n}") for n in range(len(rollouts))]
        other.play(held_out, max_tokens=length, temperature=settings.temperature)
        known = [e.correct for e in (r.episode for r in held_out) if e is not None and e.scored]
        right = sum(known) / len(known) if known else math.nan
    player.engine.release()
    with torch.random.fork_rng():
        update_seconds = _update_seconds(settings, model, rollouts, batch)

    rewards, groups = [each.reward for each in rollouts], [each.group for each in rollouts]
    episodes = [each.episode for each in rollouts]
    outcomes = [each.outcome if each is not None else None for each in episodes]
    correct = [
        [each and each.correct for each in group] for group in by_group(outcomes, groups).values()
    ]
    turns = [turn for each in episodes if each is not None for turn in each.turns]
    calls = [turn["action"] for turn in turns if turn["calls"]]
    log_probs = [log_prob for each in rollouts for log_prob in each.tokens.log_probs]
    # All other tokens have a log_prob of 0.
    sampled = sum(sum(each.tokens.mask) for each in rollouts)
    figures = {
        "tasks": len(task_ids),
        "tries": tries,
        **batch_metrics([each.figures for each in rollouts], rewards, groups),
        "signal": mixed_share(by_group(outcomes, groups).values(), settings.group_size),
        "live_groups": mixed_share(correct, settings.group_size),
        "group_size_advice": group_size_advice(correct),
        "held_out_accuracy": right,
        "null_arguments": sum(map(bool, map(_NULL_ARGUMENT.search, calls))) / max(1, len(calls)),
        "entropy": -math.fsum(log_probs) / sampled if sampled else math.nan,
        **{
            kind: dict(Counter(code for turn in turns for code in turn[kind]).most_common())
            for kind in ("errors", "repairs")
        },
        "rollout_seconds": playing,
        "update_seconds": update_seconds,
        "seconds_per_step": playing + update_seconds,
        "peak_memory": peak_memory(model.device),
    }
    kinds = ("errors", "repairs", "action")
    example = next((turn["action"] for kind in kinds for turn in turns if turn[kind]), "")
    findings += _judged(figures, settings, example[:200], model.num_parameters() < _SMALL)
    return Report(tuple(findings), figures)


def template_findings(env: ToolEnv[Any], tokenizer: PreTrainedTokenizerBase) -> Iterator[Finding]:
    """Check that the chat template shows the tools unchanged.

    Args:
        env: The environment, after `reset`.
        tokenizer: Tokenizer with the chat template.
    """
    prompt, schemas = prompt_messages(env), env.tool_schemas()
    options: dict[str, Any] = {"add_generation_prompt": True, "tokenize": False}
    bare = str(tokenizer.apply_chat_template(prompt, **options))
    shown = str(tokenizer.apply_chat_template(prompt, tools=schemas, **options))
    names = [name for name, spec in env.tools.items() if not spec.hidden]
    hidden = [name for name in names if shown.count(name) <= bare.count(name)]
    if hidden:
        reason = f"The chat template does not show the tools {', '.join(hidden)}."
    elif _NULL.search(shown) and not _NULL.search(json.dumps([prompt, schemas])):
        reason = "The chat template adds null to the tools."
    else:
        return
    reason += f" It renders: {shown[-_EXCERPT:]!r}."
    yield Finding("template", "no-go", reason, _OTHER_TEMPLATE)


def expert_findings(
    settings: TrainSettings,
    env: ToolEnv[Any],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    room: int,
) -> Iterator[Finding]:
    """Check that the expert's transcripts survive tokenization and fit into the context.

    Nothing is checked if the environment has no expert.

    Args:
        settings: Settings of the planned training.
        env: The environment.
        model: The model.
        tokenizer: Tokenizer of the model.
        room: Maximum number of tokens of a rollout after its prompt.
    """
    if type(env).expert is ToolEnv.expert:
        return
    seed, kwargs = settings.seed, settings.training_kwargs
    stop, lengths = stop_ids(model, tokenizer), list[int]()
    for transcript in demonstrate(
        settings.env_id, _TRANSCRIPTS, demonstrator="expert", seed=seed, **kwargs
    ):
        chat = [{k: v for k, v in message.items() if k != "weight"} for message in transcript]
        spoken = iter([message for message in chat if message["role"] == "assistant"])
        try:
            examples = list(examples_of(chat, env.tool_schemas(), tokenizer))
        except (ConfigurationError, TemplateError, TypeError, ValueError) as problem:
            reason = f"Supervised training cannot use this chat format: {problem}"
            advice = "Train with reinforcement learning alone: pass --sft-steps 0."
            yield Finding("round_trip", "warn", reason, advice)
            return
        for example in examples:
            places = itertools.groupby(range(len(example.ids)), key=example.learn.__getitem__)
            turns = [list(place) for is_learned, place in places if is_learned]
            played = turns[: max(1, len(turns) - 1)]  # excludes "done"
            lengths += [played[-1][-1] + 1 - played[0][0]] if played else []
            for turn in turns:
                tokens, message = [example.ids[place] for place in turn], next(spoken)
                text = str(tokenizer.decode(tokens[:-1] if tokens[-1] in stop else tokens))
                meant, read = (
                    parse_calls(each, env.tools, parsing=env.parsing) for each in (message, text)
                )
                if meant != read:
                    fault = f"is read as {read} instead of {meant}"
                elif _NULL.search(text) and not _NULL.search(json.dumps(message, default=str)):
                    fault = "has a null that the expert did not write"
                else:
                    continue
                reason = f"A turn of the expert, rendered by the chat template, {fault}:"
                reason += f" {text[-_EXCERPT:]!r}."
                yield Finding("round_trip", "no-go", reason, _OTHER_TEMPLATE)
                return
    if longer := sum(length > room for length in lengths):
        reason = f"{longer} of {len(lengths)} rollouts of the expert do not fit into {room} tokens:"
        reason += f" they take up to {max(lengths)}."
        advice = "Raise --max-completion-length, or use a model with a longer context."
        level: Level = "no-go" if 2 * longer > len(lengths) else "warn"
        yield Finding("room", level, reason, advice)


def _update_seconds(
    settings: TrainSettings, model: PreTrainedModel, rollouts: Sequence[Rollout], batch: int
) -> float:
    """Return the duration of a step's update in seconds, measured with the memory use of training.

    The learning rate is 0. The KL reference is also in memory. The result is nan if no rollout has
    a turn or if there is not enough memory.
    """
    texts = [
        Example((*each.prompt, *each.tokens), (*[False] * len(each.prompt), *map(bool, each.mask)))
        for each in (rollout.tokens for rollout in rollouts if rollout.tokens.turns)
    ][:batch]
    if not texts:
        return math.nan
    was_training = model.training
    model.train(False)
    if settings.gradient_checkpointing:
        make_ready(model, settings.dtype, gradient_checkpointing=True)
    config = adapter_config(settings)
    adapter = None if config is None else Adapter(model, config)
    try:
        reference = copy.deepcopy(model) if settings.beta and adapter is None else None
        trained = (parameter for parameter in model.parameters() if parameter.requires_grad)
        tokens, began = settings.tokens_per_pass, time.monotonic()
        with closing(MasterAdamW(trained)) as optimizer:
            for part in passes(texts, tokens, model):
                log_probs, _ = token_log_probs(
                    model, [texts[index] for index in part], temperature=settings.temperature
                )
                (-log_probs.mean()).backward()  # type: ignore[no-untyped-call]
            norm, broken = optimizer.norm()
            if not broken:
                optimizer.step(0.0, norm, 1.0)
            float(norm)  # waits for the GPU
        del reference
        return (time.monotonic() - began) * batch / len(texts)
    except torch.OutOfMemoryError:
        return math.nan
    finally:
        if adapter is not None:
            adapter.remove()
        model.zero_grad(set_to_none=True)
        model.train(was_training)
        release_memory()


def _judged(
    figures: Mapping[str, Any], settings: TrainSettings, example: str, is_small: bool
) -> Iterator[Finding]:
    """Yield the findings about the rollouts and the update.

    Args:
        figures: Measurements by name.
        settings: Settings of the planned training.
        example: Text of a turn, preferably one that failed.
        is_small: Whether the model was trained from scratch.
    """
    f, size = SimpleNamespace(**figures), settings.group_size
    scored = int(f.rollouts - f.faults)
    bound = wilson_interval(0, scored)[1]
    imitate = "Train longer on demonstrations (--demonstrations, --sft-steps)."
    calls = imitate
    if settings.env_kwargs.get("parsing") == "strict":
        calls = f'Use parsing="lenient". Otherwise: {imitate}'
    if f.null_arguments > 0.1:
        calls = (
            "{null_arguments:.0%} of the calls pass null for arguments. Models learn this from"
            " data in which Arrow padded every call. Make demonstrations with `sft_dataset`, or"
            f" give the column the feature type Json(). {calls}"
        )
    learn = "Train longer on demonstrations, start with easier tasks, or use a better model."
    general = "Train on more tasks of more kinds, with fewer --sft-steps."
    if is_small:
        learn = general = (
            "A model that was trained from scratch does not know words outside its training data."
            " It needs thousands of questions that differ only in their values, and more"
            " --demonstrations and --sft-steps. docs/own-database.md shows how to write such"
            " questions. For other questions use a pretrained model with --model."
        )
    is_read = f.validity >= 0.5
    is_mixed = is_read and size > 1 and f.accuracy > 0
    is_rare = f.live_groups < 0.1 and f.accuracy < 0.5
    texts = {
        **figures,
        "size": size,
        "scored": scored,
        "example": example,
        "length": settings.max_completion_length,
        "bound": bound,
        **{
            kind: ", ".join(f"{count} {code}" for code, count in figures[kind].items())
            for kind in ("errors", "repairs")
        },
    }
    rules: list[tuple[str, bool, bool, str, str]] = [  # check, no-go if, warning if, reason, advice
        (
            "faults",
            f.faults > 0.2 * f.rollouts,
            f.faults > 0,
            "The environment failed in {faults:.0f} of {rollouts:.0f} rollouts.",
            "Run `toolgym eval` on it to see the cause. A training stops above 20%.",
        ),
        (
            "validity",
            scored > 0 and not is_read,  # also if there was no turn
            f.validity < 0.8,
            "Only {validity:.0%} of the turns have valid calls ({errors}), as in {example!r}.",
            calls,
        ),
        (
            "tool_failures",
            is_read and f.tool_failures > 0.5,
            is_read and f.tool_failures > 0.2,
            "{tool_failures:.0%} of the calls end in an error ({errors}), as in {example!r}.",
            calls,
        ),
        (
            "repairs_per_call",
            False,
            f.repairs_per_call > 0.5,
            "A call needs {repairs_per_call:.2g} repairs on average ({repairs}), which reduce the"
            " reward.",
            calls,
        ),
        (
            "unfinished",
            f.unfinished > 0.5,
            f.unfinished > 0.1,
            "{unfinished:.0%} of the rollouts exceed {length} tokens.",
            "Raise --max-completion-length. " + imitate,
        ),
        (
            "answered",
            False,
            f.answered < 0.8 and f.unfinished <= 0.1,
            "Only {answered:.0%} of the episodes end with an answer.",
            "Raise --step-limit. " + imitate,
        ),
        (
            "accuracy",
            is_read and f.accuracy == 0 and scored >= _ENOUGH,
            is_read and f.accuracy == 0,
            "None of {scored} rollouts is correct (at most {bound:.1%} are, with 95% confidence)."
            " Reinforcement learning can only reinforce behavior that a model sometimes shows.",
            learn if scored >= _ENOUGH else f"Play more rollouts with --tasks or --tries. {learn}",
        ),
        (
            "held_out",
            (f.held_out_accuracy == 0 or is_small) and bound < f.accuracy > 2 * f.held_out_accuracy,
            f.held_out_accuracy < f.accuracy / 2,
            "{held_out_accuracy:.1%} of the rollouts of held-out tasks are correct, but"
            " {accuracy:.1%} of those of training tasks: the model has memorized training tasks.",
            general,
        ),
        (
            "live_groups",
            is_mixed and (f.signal < 0.1 or (is_rare and f.unfinished > 0.25)),
            is_mixed and f.live_groups < 0.5,
            "{live_groups:.0%} of groups of {size} have correct and incorrect members, and in"
            " {signal:.0%} the outcomes differ. {accuracy:.1%} of the rollouts are correct.",
            learn if is_rare else f.group_size_advice,
        ),
        (
            "entropy",
            scored > 0 and not math.isfinite(f.entropy),
            f.entropy < 1e-3,
            "The entropy is {entropy:.2g} nats per token. If it is near 0, rollouts hardly differ;"
            " nan means that the model's probabilities are not finite.",
            "Raise --temperature, or use an earlier checkpoint or other weights.",
        ),
        (
            "memory",
            scored > 0 and math.isnan(f.update_seconds),
            False,
            "The update of a step does not fit into memory ({peak_memory:.0f} MiB were used).",
            "Lower --tokens-per-pass, or add --gradient-checkpointing or --lora.",
        ),
    ]
    for check, is_hopeless, is_wrong, reason, advice in rules:
        if is_hopeless or is_wrong:
            level: Level = "no-go" if is_hopeless else "warn"
            yield Finding(check, level, reason.format_map(texts), advice.format_map(texts))
