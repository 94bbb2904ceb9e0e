"""Checks of the model's chat format against the environment, before anything is run.

Four things have ruined trainings without an error: a template that leaves tools out of the prompt,
one that writes `null` where nobody did, one whose calls our parser does not read back, and results
that cannot be appended to what was sampled. Each is tried on real text: the environment's own tools
and prompt, and transcripts of its expert, from calls to text to tokens and back to calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from jinja2 import TemplateError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.demonstrations import demonstrate
from adapters.training.models.tokenized_examples import (
    Example,
    examples_of,
)
from adapters.training.preflight.call_formats import INVENTED, WORDS, readable_formats
from adapters.training.preflight.judge import Finding, Level
from adapters.training.settings import TrainSettings
from toolgym.calls import ToolCall, parse_calls
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.generation import context_length, stop_ids
from toolgym.messages import Message, prompt_messages

Needs = Callable[[PreTrainedModel, PreTrainedTokenizerBase, ToolEnv[Any]], None]
"""Raises `ConfigurationError` where a trainer cannot work with a model and its template, such as a
template for which a tool's turn is no clean difference of two renderings."""

_NOTHING: Final = re.compile(r"\b(?:null|None)\b")
_SHOWN: Final = 400  # characters of a rendering in a finding
_OTHER_TEMPLATE: Final = (
    "Pass --chat-template hermes, which shows the tools to any model, or take a tokenizer with the"
    " chat template of a tool-calling model."
)
_OTHER_FORMAT: Final = (
    "Pass --chat-template hermes, or take a model whose template writes calls in a format that the"
    f" parser reads as they stand: {readable_formats()}."
)


def check_schemas(env: ToolEnv[Any]) -> Iterator[Finding]:
    """Every tool has a JSON schema that a template can print and a model can follow."""
    for name, spec in env.tools.items():
        try:
            schema = json.loads(json.dumps(spec.schema()))["function"]
        except (TypeError, ValueError) as problem:
            yield _bad_schema(name, f"its schema is no JSON ({problem})")
            continue
        parameters = schema.get("parameters", {})
        properties = parameters.get("properties", {})
        if not schema.get("description"):
            yield _bad_schema(name, "it has no description")
        if parameters.get("type") != "object" or set(spec.required) - properties.keys():
            yield _bad_schema(name, "its parameters are no object that has all required ones")
        untyped = [key for key, value in properties.items() if not _TYPED & value.keys()]
        if untyped:
            yield _bad_schema(name, f"nothing tells the type of {', '.join(untyped)}")


_TYPED: Final = {"type", "anyOf", "oneOf", "enum", "const", "$ref", "allOf"}


def _bad_schema(name: str, what: str) -> Finding:
    return Finding(
        "schemas",
        "no-go",
        f"The tool {name} cannot be shown to a model: {what}.",
        "Give the method marked `@tool` types and a docstring with an Args line for each argument.",
    )


def check_prompt(env: ToolEnv[Any], tokenizer: PreTrainedTokenizerBase) -> Iterator[Finding]:
    """The prompt shows every tool, and calls and results are rendered with no `null` added.

    Args:
        env: After `reset`.
    """
    prompt, schemas = prompt_messages(env), env.tool_schemas()
    try:
        shown = render_chat(prompt, schemas, tokenizer)
        bare = render_chat(prompt, [], tokenizer)
        called = render_chat(INVENTED, [], tokenizer)
    except (TemplateError, TypeError, ValueError, KeyError) as problem:
        reason = f"The chat template refuses a chat with tools: {problem}."
        yield Finding("template", "no-go", reason, _OTHER_TEMPLATE)
        return
    hidden = [name for name in env.tools if shown.count(name) <= bare.count(name)]
    if hidden:
        reason = f"The chat template does not show the tools {', '.join(hidden)}."
        yield Finding("template", "no-go", f"{reason} {_excerpt(shown)}", _OTHER_TEMPLATE)
    lost = [word for word in WORDS if word not in called]
    if lost:
        reason = f"The chat template drops calls or results ({', '.join(lost)})."
        yield Finding("template", "no-go", f"{reason} {_excerpt(called)}", _OTHER_TEMPLATE)
    source = json.dumps([prompt, schemas], default=str)
    for text in [
        text for text, original in ((called, ""), (shown, source)) if _adds_null(text, original)
    ]:
        reason = "The chat template writes null where nobody did."
        yield Finding("template", "no-go", f"{reason} {_excerpt(text)}", _OTHER_TEMPLATE)


def shows_arguments(env: ToolEnv[Any], tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the prompt tells the arguments of the tools too, and not their names alone."""
    prompt = prompt_messages(env)
    shown = render_chat(prompt, env.tool_schemas(), tokenizer)
    bare = render_chat(prompt, [], tokenizer)
    names = [key for spec in env.tools.values() for key in spec.arguments.model_fields]
    return all(shown.count(name) > bare.count(name) for name in names)


def render_chat(
    messages: Sequence[Message], tools: Sequence[Any], tokenizer: PreTrainedTokenizerBase
) -> str:
    """A chat as the template writes it, ready for the model's next turn."""
    return str(
        tokenizer.apply_chat_template(
            list(messages), tools=list(tools) or None, add_generation_prompt=True, tokenize=False
        )
    )


def _adds_null(text: str, source: str) -> bool:
    return bool(_NOTHING.search(text)) and not _NOTHING.search(source)


def _excerpt(text: str) -> str:
    return f"It renders: {text[-_SHOWN:]!r}."


def check_round_trip(
    env: ToolEnv[Any],
    transcripts: Sequence[Sequence[Message]],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
) -> Iterator[Finding]:
    """The parser finds an expert's calls in the tokens of the expert's transcript.

    Args:
        env: For its tools and its parsing.
        transcripts: Of an expert; none where the environment has none.
        model: Declares, with the tokenizer, which tokens end a turn.
    """
    if not transcripts:
        reason = "The environment has no expert, so no transcript could be tried on the template."
        yield Finding("round_trip", "warn", reason, "Write its `expert` method.")
    stop = stop_ids(model, tokenizer)
    for transcript in transcripts:
        learnt = [{k: v for k, v in message.items() if k != "weight"} for message in transcript]
        spoken = [message for message in learnt if message["role"] == "assistant"]
        try:
            examples = list(examples_of(learnt, env.tool_schemas(), tokenizer))
        except (ConfigurationError, TemplateError, TypeError, ValueError) as problem:
            advice = "It can be trained by reinforcement alone: pass --sft-steps 0."
            reason = f"Demonstrations cannot be imitated in this chat format: {problem}"
            yield Finding("round_trip", "warn", reason, advice)
            return
        texts = [text for example in examples for text in _turns(example, tokenizer, stop)]
        for message, text in zip(spoken, texts, strict=True):
            problem_found = _misread(message, text, env)
            if problem_found is not None:
                yield problem_found
                return


def _turns(
    example: Example, tokenizer: PreTrainedTokenizerBase, stop: frozenset[int]
) -> Iterator[str]:
    """The text of each learnt turn, without the token that ends it."""
    turn: list[int] = []
    for token, learnt in zip((*example.ids, -1), (*example.learn, False), strict=True):
        if learnt:
            turn.append(token)
        elif turn:
            body = turn[:-1] if turn[-1] in stop else turn
            yield str(tokenizer.decode(body, skip_special_tokens=False))
            turn = []


def _misread(message: Message, text: str, env: ToolEnv[Any]) -> Finding | None:
    """The fault in the rendering of one assistant's message; None if there is none."""
    meant = parse_calls(message, env.tools, parsing=env.parsing)
    read = parse_calls(text, env.tools, parsing=env.parsing)
    if [_call(call) for call in meant] == [_call(call) for call in read]:
        if not _adds_null(text, json.dumps(message, default=str)):
            return None
        what = "with a null that nobody wrote"
    else:
        calls_text = "; ".join(_call_text(call) for call in read) or "no call"
        what = f"so that our parser ({env.parsing}) reads {calls_text}"
    advice = _OTHER_FORMAT
    if env.parsing == "strict":
        advice = 'Take parsing="lenient": strict reads one format only.'
    calls = "; ".join(f"{call.name}({call.arguments})" for call in meant)
    reason = f"An expert's call {calls} is rendered {what}. {_excerpt(text)}"
    return Finding("round_trip", "no-go", reason, advice)


def _call(call: ToolCall) -> tuple[Any, ...]:
    return call.name, call.arguments, call.repairs, call.error and call.error.code


def _call_text(call: ToolCall) -> str:
    remark = call.error.message if call.error else ", ".join(call.repairs)
    return f"{call.name}({call.arguments})" + (f" [{remark}]" if remark else "")


def check_rollouts(
    env: ToolEnv[Any],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    needs: Needs,
) -> Iterator[Finding]:
    """Rollouts can be kept as the tokens that were sampled, results appended to them.

    Args:
        env: The environment, after `reset`.
        needs: Raises `ConfigurationError` if they cannot.
    """
    try:
        needs(model, tokenizer, env)
    except ConfigurationError as problem:
        refused = f"The trainers refuse this model: {problem}"
        yield Finding("tool_turn", "no-go", refused, _OTHER_TEMPLATE)


# Room: whether a rollout fits into its tokens, by the transcripts of an expert.
#
# A rollout that runs out of tokens has not answered. Where even the expert's does not fit, no
# policy can be right, however long it is trained.


def expert_transcripts(settings: TrainSettings, env: ToolEnv[Any], n: int) -> list[list[Message]]:
    """Transcripts of the environment's expert on training tasks; none where it has no expert."""
    if type(env).expert is ToolEnv.expert:
        return []
    return demonstrate(
        settings.env_id,
        n,
        demonstrator="expert",
        seed=settings.seed,
        **settings.training_kwargs,
    )


def completion_lengths(
    transcripts: Sequence[Sequence[Message]], env: ToolEnv[Any], tokenizer: PreTrainedTokenizerBase
) -> list[int]:
    """Tokens of each transcript after its prompt, results of tools included."""
    tools, lengths = env.tool_schemas(), []
    for transcript in transcripts:
        # The last turn, which only says that it is over, is not asked for in reinforcement.
        whole = _length(render_chat(transcript[:-1], tools, tokenizer), tokenizer)
        lengths.append(whole - prompt_length(transcript, env, tokenizer))
    return lengths


def prompt_length(
    transcript: Sequence[Message], env: ToolEnv[Any], tokenizer: PreTrainedTokenizerBase
) -> int:
    """Tokens of a transcript before its first turn."""
    begin = next(i for i, message in enumerate(transcript) if message["role"] == "assistant")
    return _length(render_chat(transcript[:begin], env.tool_schemas(), tokenizer), tokenizer)


def check_room(
    settings: TrainSettings,
    env: ToolEnv[Any],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    lengths: Sequence[int],
) -> Iterator[Finding]:
    """An expert's rollout fits into a rollout, and a prompt with a rollout into the model.

    Args:
        env: After `reset`.
        lengths: Tokens of the completions of an expert.
    """
    room, context = settings.max_completion_length, context_length(model)
    prompt = _length(render_chat(prompt_messages(env), env.tool_schemas(), tokenizer), tokenizer)
    if prompt + room > context:
        reason = (
            f"A prompt of {prompt} tokens and a rollout of {room} exceed the model's {context}."
        )
        yield Finding("room", "no-go", reason, "Lower --max-completion-length.")
    too_long = sum(length > room for length in lengths)
    if too_long:
        reason = (
            f"{too_long} of {len(lengths)} rollouts of the expert do not fit into {room} tokens:"
        )
        reason += f" they take up to {max(lengths)}."
        level: Level = "no-go" if 2 * too_long > len(lengths) else "warn"
        yield Finding("room", level, reason, "Raise --max-completion-length.")


def _length(text: str, tokenizer: PreTrainedTokenizerBase) -> int:
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])
