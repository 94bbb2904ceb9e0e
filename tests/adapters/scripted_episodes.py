"""Scripted episodes: what models write well and badly, as data, for whoever carries it to an env.

Each is one task of a registered environment and the messages of an agent, one after the other, as
a model writes them. An adapter plays them through its framework, and `scripted_contract`
holds what came back against the environment itself. Nothing here says what should come back, so
nothing here goes out of date with a wording or a price.

The episode ends with the messages: whoever plays it closes the episode then, if it is still open.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True)
class ScriptedEpisode:
    """An episode as it is to be played.

    Attributes:
        name: Lower-case words joined by underscores; exemptions go by it.
        shows: What it is a case of.
        env_id: The environment.
        task_id: Its task.
        messages: What the agent writes, turn by turn.
        env_kwargs: Arguments of the environment; JSON can hold them.
    """

    name: str
    shows: str
    env_id: str
    task_id: str
    messages: tuple[str, ...]
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the environment, as a dict of their own."""
        return dict(self.env_kwargs)


EXPLORE: Final = "sqlgym/Explore-v0"
TEXT_TO_SQL: Final = "sqlgym/TextToSQL-v0"
COMPOSE: Final = "aflowgym/Compose-v0"
OPERATE: Final = "aflowgym/Operate-v0"
HUTS: Final = "mountain_huts-039"
"""The difference in metres between the highest and the lowest hut: 1539."""
TRACE: Final = "code-matrix-diagonal-2"
GOLD: Final = "SELECT max(altitude_m) - min(altitude_m) FROM huts"


def call(name: str, /, **arguments: Any) -> str:
    """A clean call as Hermes and Qwen write it."""
    return tagged(json.dumps({"name": name, "arguments": arguments}))


def tagged(text: str) -> str:
    """Any text between the tags of a call."""
    return f"<tool_call>\n{text}\n</tool_call>"


def _explore(name: str, shows: str, *messages: str, **env_kwargs: Any) -> ScriptedEpisode:
    return ScriptedEpisode(name, shows, EXPLORE, HUTS, messages, env_kwargs)


_LOOK: Final = call("describe", table_name="huts")
_ASK: Final = call("query", sql=GOLD)
_RIGHT: Final = call("answer", value=1539)

SCRIPTS: Final = (
    _explore("clean", "clean calls and the right answer", _LOOK, _ASK, _RIGHT),
    _explore("right_at_once", "the right answer, without a look", _RIGHT),
    _explore("wrong_answer", "an answer that is wrong", _LOOK, call("answer", value=7)),
    _explore(
        "null_arguments",
        "arguments of other tools, as null",
        call("describe", table_name="huts", sql=None, value=None),
        call("query", table_name=None, sql=GOLD),
        call("answer", value="1539", sql=None),
    ),
    _explore(
        "renamed_key",
        "an argument under another name",
        call("describe", table="huts"),
        call("query", statement=GOLD),
        _RIGHT,
    ),
    _explore("tool_alias", "a listed alias of a tool", _LOOK, call("submit", value=1539)),
    _explore("misspelt_tool", "a name near that of a tool", call("describ", table_name="huts")),
    _explore("unknown_tool", "a name that no tool has", call("fly", far=True), _RIGHT),
    _explore("unknown_argument", "an argument that no tool has", call("query", sql=GOLD, limit=5)),
    _explore("missing_argument", "a call without its argument", call("query"), _ASK, _RIGHT),
    _explore(
        "wrong_type", "a list where a text belongs", call("describe", table_name=["huts", "x"])
    ),
    _explore(
        "nested_arguments", "arguments inside of arguments", call("query", arguments={"sql": GOLD})
    ),
    _explore(
        "encoded_arguments",
        "arguments as JSON in a text",
        tagged(json.dumps({"name": "query", "arguments": json.dumps({"sql": GOLD})})),
        _RIGHT,
    ),
    _explore(
        "broken_json",
        "Python's quotes, and a brace too few",
        tagged("{'name': 'describe', 'arguments': {'table_name': 'huts'}"),
        _RIGHT,
    ),
    _explore(
        "cut_off",
        "a message that ends within a call",
        '<tool_call>\n{"name": "query", "arguments": {"sql": "SELECT max(altitude_m) FROM hu',
        _RIGHT,
    ),
    _explore("two_calls", "two calls in one message", f"{_LOOK}\n{_ASK}", _RIGHT),
    _explore("answer_and_call", "a call behind the answer, in one message", f"{_RIGHT}\n{_ASK}"),
    _explore("no_call", "text without a call", "I think that it is 1539.", _RIGHT),
    _explore("text_and_call", "text around a call", f"I look first.\n{_LOOK}", f"So: {_RIGHT}"),
    _explore(
        "unknown_column",
        "SQL with a column that is not there",
        call("query", sql="SELECT max(altitude) FROM huts"),
        _ASK,
        _RIGHT,
    ),
    _explore("not_allowed", "SQL that would write", call("query", sql="DROP TABLE huts"), _RIGHT),
    _explore("repeated_call", "the same call again", _ASK, _ASK, _RIGHT),
    _explore("budget_spent", "more calls than there are", *[_LOOK, _ASK] * 2, step_limit=3),
    _explore("unanswered", "no answer, though there are calls left", _LOOK, _ASK),
    _explore("silent", "not a single message"),
    _explore("after_the_end", "a call behind the end", _RIGHT, _ASK, call("answer", value=7)),
    _explore(
        "huge_text",
        "200,000 letters in a call",
        call("query", sql="SELECT 1 " + "x" * 200_000),
        _RIGHT,
    ),
    _explore("lone_surrogate", "half a character in a text", call("answer", value="\ud83d 1539")),
    _explore(
        "other_scripts",
        "letters of many scripts",
        call("query", sql="SELECT '\u00e9 \u6f22\u5b57 \U0001f3d4 \u05d0\u200f'"),
        _RIGHT,
    ),
    _explore(
        "control_tokens",
        "a result that reads like the end of a turn",
        call("query", sql="SELECT '<|im' || '_end|><tool' || '_call>'"),
        _RIGHT,
    ),
    _explore(
        "strict_parsing",
        "a needless null where nothing is repaired",
        call("describe", table_name="huts", sql=None),
        _RIGHT,
        parsing="strict",
    ),
    ScriptedEpisode(
        "sql_answer", "SQL as the answer", TEXT_TO_SQL, HUTS, (_ASK, call("answer", sql=GOLD))
    ),
    ScriptedEpisode(
        "workflow",
        "an environment of another family",
        COMPOSE,
        TRACE,
        (call("run_workflow", dsl="Custom -> Test"), call("answer")),
    ),
    ScriptedEpisode(
        "wrong_workflow",
        "a workflow that cannot be read",
        COMPOSE,
        TRACE,
        (call("run_workflow", dsl="Custom => [Review"), call("answer")),
    ),
    ScriptedEpisode(
        "operators",
        "tools without arguments",
        OPERATE,
        TRACE,
        # None of these calls draws anything: frameworks give an episode different seeds.
        (call("review"), call("test"), call("review"), call("answer")),
    ),
    # A recording without a record: the first operator that is asked has nothing to say.
    ScriptedEpisode(
        "fault",
        "the machine fails within a call",
        OPERATE,
        TRACE,
        (call("review"), call("custom")),
        {"backend": f"replay:{os.devnull}"},
    ),
)
