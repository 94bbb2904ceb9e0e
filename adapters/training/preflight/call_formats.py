"""The formats of calls: the one that a chat template writes, and those that a model answers in.

A model calls as it was taught, whatever its template shows. Where the two differ, demonstrations
teach one format and rollouts begin in another; and a format that the parser does not know looks as
if the model never called. Both are seen here: an invented call is rendered by the template and
read back, and the answers of a sample are counted by the formats of their calls.
"""

from __future__ import annotations

import os.path
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from adapters.training.preflight.judge import Finding
from toolgym.calls import FORMATS, formats_in
from toolgym.messages import Message


def readable_formats() -> str:
    """The formats that the parser reads, in a few words."""
    families = {family for each in FORMATS for family in each.families}
    return (
        f"those of {len(families)} model families (`toolgym.calls.FORMATS`): Qwen, Llama, Mistral,"
        " GLM, DeepSeek, Kimi, gpt-oss, Gemma, Phi, Granite, Command and others"
    )


_SAYS_SO: Final = ("tool", "func", "call", "invoke", "plugin", "action", "python")
LOOKS_LIKE_A_CALL: Final = (
    *("<tool", "<function", "<invoke", "<|tool", "[TOOL", '"arguments":', '"parameters":'),
    *(
        mark
        for mark in [mark for each in FORMATS for mark in each.marks]
        if any(word in mark.lower() for word in _SAYS_SO)  # others open what is no call as well
    ),
)
"""What a text holds that is a call, or was meant to be one."""

# An invented call, whose words occur nowhere else.

WORDS: Final = ("toolgym_name", "toolgym_key", "toolgym_value", "toolgym_result")
INVENTED: Final[list[Message]] = [
    {"role": "user", "content": "hello"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"type": "function", "function": {"name": WORDS[0], "arguments": {WORDS[1]: WORDS[2]}}}
        ],
    },
    {"role": "tool", "name": WORDS[0], "content": WORDS[3]},
]
_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": WORDS[0],
        "description": "A tool.",
        "parameters": {
            "type": "object",
            "properties": {WORDS[1]: {"type": "string", "description": "A text."}},
            "required": [WORDS[1]],
        },
    },
}


def template_format(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The format in which a chat template writes a call; None where the parser reads none."""
    options: dict[str, Any] = {"tools": [_TOOL], "tokenize": False}
    try:
        prompt = str(
            tokenizer.apply_chat_template(INVENTED[:1], add_generation_prompt=True, **options)
        )
        whole = str(tokenizer.apply_chat_template(INVENTED[:2], **options))
    except (TemplateError, TypeError, ValueError, KeyError):
        return None
    same = len(os.path.commonprefix([prompt, whole]))  # noqa: RUF071  # in characters
    turn = whole[same:]
    end = turn.rfind(str(tokenizer.eos_token)) if tokenizer.eos_token else -1
    found = formats_in(turn[:end] if end >= 0 else turn, [_TOOL])
    return found[0] if found else None


@dataclass(frozen=True)
class AnswerFormats:
    """The formats of the calls in the turns of a sample.

    Attributes:
        turns: That were played.
        counts: Turns by the format of their first call, the most frequent first.
        unread: Turns without a call that look as if they held one.
        example: The first of these.
    """

    turns: int
    counts: Mapping[str, int]
    unread: int
    example: str

    @property
    def figures(self) -> dict[str, Any]:
        """Those of a report."""
        share = self.unread / self.turns if self.turns else 0.0
        return {"call_formats": dict(self.counts), "unread_calls": share}


def answer_formats(turns: Iterable[Mapping[str, Any]], tools: Any) -> AnswerFormats:
    """The formats that a model answers in.

    Args:
        turns: As an `EpisodeRecord` has them.
        tools: The environment's.
    """
    texts = [str(turn["action"]) for turn in turns]
    counts: Counter[str] = Counter()
    unread = []
    for text in texts:
        found = formats_in(text, tools)
        if found:
            counts[found[0]] += 1
        elif any(mark in text for mark in LOOKS_LIKE_A_CALL):
            unread.append(text)
    return AnswerFormats(
        len(texts), dict(counts.most_common()), len(unread), unread[0] if unread else ""
    )


def format_findings(template: str | None, answers: AnswerFormats) -> Iterator[Finding]:
    """What is doubtful about the formats.

    Args:
        template: The format that the chat template writes.
        answers: Those that the model answers in.
    """
    with_calls = sum(answers.counts.values())
    first = next(iter(answers.counts), None)
    if (
        template is not None
        and first is not None
        and 2 * answers.counts.get(template, 0) < with_calls
    ):
        reason = f"The chat template writes calls as {template}, and the model writes them as"
        reason += f" {first} in {answers.counts[first]} of {with_calls} turns that hold any."
        advice = "Both are read, but demonstrations teach the template's: warm the model up in it"
        advice += " (more --demos and --sft-steps), or give a chat template that writes calls as"
        advice += f" {first}, as a file, by --chat-template."
        yield Finding("call_format", "warn", reason, advice)
    if 2 * answers.unread > answers.turns:
        reason = f"{answers.unread} of {answers.turns} turns hold no call that is read, and look as"
        reason += f" if they should, as in {answers.example[:200]!r}."
        advice = f"The formats that the parser reads are {readable_formats()}. Pass --chat-template"
        advice += " hermes, which tells the model one of them, and warm it up; or, if calls are cut"
        advice += " off, raise --max-completion-length."
        yield Finding("call_format", "warn", reason, advice)
