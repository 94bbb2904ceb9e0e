"""The formats of calls: what a template writes, what a model answers in, and what is said of it."""

from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.training.models.chat_templates import NAMED, with_chat_template
from adapters.training.preflight.call_formats import (
    AnswerFormats,
    answer_formats,
    format_findings,
    formats_in,
    readable_formats,
    template_format,
)
from toolgym import ToolEnv, registration
from toolgym.calls import parse_calls
from toolgym.records import EpisodeRecord

pytestmark = pytest.mark.torch
NOTES = "trl-tests/Notes-v0"
HERMES = '<tool_call>\n{"name": "read", "arguments": {"note": "note-1"}}\n</tool_call>'
PYTHON = 'read(note="note-1")'
XML = "<function=read>\n<parameter=note>\nnote-1\n</parameter>\n</function>"
GLM = "<tool_call>read\n<arg_key>note</arg_key>\n<arg_value>note-1</arg_value>\n</tool_call>"
UNKNOWN = "<toolbox>read note-1</toolbox>"
TEMPLATES = {
    "qwen3": HERMES,
    "qwen3_5_think": f"<tool_call>\n{XML}\n</tool_call>",
    "glm4moe": GLM,
}


def format_of(text: str) -> str:
    (name,) = formats_in(text, registration.make(NOTES).tools)
    return name


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_format_of_a_template_is_found_in_a_call_that_it_writes(
    make_tokenizer: Any, template: str
) -> None:
    assert template_format(make_tokenizer(template)) == format_of(TEMPLATES[template])


def test_formats_are_told_apart() -> None:
    assert format_of(HERMES) == "hermes"
    assert len({format_of(text) for text in (HERMES, PYTHON, XML, GLM)}) == 4


@pytest.mark.parametrize("name", NAMED)
def test_our_own_templates_write_hermes(make_tokenizer: Any, name: str) -> None:
    assert template_format(with_chat_template(make_tokenizer("gemma"), name)) == "hermes"


def test_a_template_that_writes_no_calls_has_no_format(make_tokenizer: Any) -> None:
    assert template_format(make_tokenizer("gemma")) is None


def turns_of(*actions: str) -> tuple[Any, ToolEnv[Any]]:
    """The recorded turns of an episode in which these were said, and the environment."""
    env = registration.make(NOTES, step_limit=20)
    env.reset(seed=0)
    for action in actions:
        env.step(action)
    return EpisodeRecord.of(env.episode, NOTES).turns, env


def test_answers_are_counted_by_the_format_of_their_calls() -> None:
    turns, env = turns_of(PYTHON, HERMES, "I wonder.", PYTHON, XML)

    answers = answer_formats(turns, env.tools)

    counts = {"python": 2, "hermes": 1, format_of(XML): 1}
    assert answers == AnswerFormats(5, counts, 0, "")
    assert answers.figures == {"call_formats": counts, "unread_calls": 0.0}
    (finding,) = format_findings("hermes", answers)
    assert (finding.check, finding.level) == ("call_format", "warn")
    assert "writes calls as hermes" in finding.reason
    assert "python in 2 of 4 turns" in finding.reason


def test_a_model_that_answers_as_its_template_writes_is_told_nothing() -> None:
    turns, env = turns_of(HERMES, HERMES, PYTHON, "I wonder.")

    assert list(format_findings("hermes", answer_formats(turns, env.tools))) == []
    assert list(format_findings(None, answer_formats(turns, env.tools))) == []
    assert list(format_findings("hermes", answer_formats((), env.tools))) == []


def test_answers_that_look_like_calls_and_are_none_are_told_with_one_of_them() -> None:
    turns, env = turns_of(UNKNOWN, UNKNOWN, HERMES)
    assert parse_calls(UNKNOWN, env.tools) == []

    answers = answer_formats(turns, env.tools)
    (finding,) = format_findings("hermes", answers)

    assert (answers.unread, answers.example) == (2, UNKNOWN)
    assert "2 of 3 turns hold no call that is read" in finding.reason
    assert UNKNOWN in finding.reason
    assert "--chat-template hermes" in finding.advice
    assert readable_formats() in finding.advice
    turns, env = turns_of(UNKNOWN, HERMES, "I wonder.")
    assert list(format_findings("hermes", answer_formats(turns, env.tools))) == []
