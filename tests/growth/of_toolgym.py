"""The readers of the core and of the adapters: calls, replies of servers, files of records."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adapters.reference import preflight
from adapters.training.models import demonstrations
from sqlgym.envs.explore import ExploreEnv
from tests.growth.measuring import Reader
from tests.toolgym.calls.fixtures import FIXTURES, SINGER
from tests.toolgym.calls.toy_sql_tools import TOOLS, TYPED
from toolgym.calls import FORMATS, Format, bind_call, parse_calls, render_call
from toolgym.chat.reply import Chat, NotAReply, read_reply
from toolgym.chat.settings import ChatSettings
from toolgym.commands.play import read_action
from toolgym.episode import without_notice
from toolgym.errors import ConfigurationError
from toolgym.messages import turn_messages
from toolgym.runs.files import read_lines, read_object
from toolgym.sanitize import escape_control_tokens, unescape_control_tokens, visible

CALL_MARKS = (
    "<tool_call>", "</tool_call>", "<function=", "<function=query>", "</function>", "<parameter=",
    "<parameter=sql>", "</parameter>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
    "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "<|python_tag|>", "<think>", "</think>", "[THINK]",
    "[/THINK]", "<|im_end|>", "</s>", "<|eot_id|>", "query(", "query(sql='", "```json\n", "```",
    '{"name": "query", ', '"arguments": {', '"sql": "', "describe", "'''", '"""', "wards, ",
    "describe(wards)\n",
)  # fmt: skip
CALL_STARTS = (
    "I look.\n",
    "query(sql='SELECT 1')",
    'query(sql="""',
    "<tool_call>",
    '<tool_call>{"name": "query", "arguments": {"sql": "',
    "<tool_call>query\n<arg_key>sql</arg_key><arg_value>",
    "<tool_call>query",
    "<function=query>",
    "<function=query><parameter=sql>",
    "[TOOL_CALLS]",
    "[TOOL_CALLS]query",
    "<think>",
    "```json\n",
    "```",
    "[",
    '{"name": "query", "arguments": ',
    "describe(",
    "<tool_call>describe(",
)
CALL_ENDS = ("</tool_call>", '"}}', "')", "wards)", "\n", "</think>", '<tool_call>{"name": "query"')


def _of_formats(formats: Sequence[Format]) -> Reader:
    """A reader of some formats of the table, with their marks and the beginnings of their calls."""
    messages = {fixture.format: fixture.one for fixture in reversed(FIXTURES)}
    texts = [messages[entry.name] for entry in formats]
    starts = [text[: text.index(SINGER)] for text in texts]
    control = [
        (*e.marks, *e.frame, *e.closes, *e.stop, e.parameter, e.close, *(e.thinking or ()))
        for e in formats
    ]
    return Reader(
        f"toolgym.calls.parse_calls of {', '.join(entry.name for entry in formats)}",
        lambda text: parse_calls(text, TOOLS),
        marks=tuple(dict.fromkeys(text for texts in control for text in texts if text)),
        before=(*starts, *(f"I say '{text[:40]}" for text in texts)),
        after=tuple(text[text.index(SINGER) + len(SINGER) :] or "x" for text in texts),
    )


_BY_SHAPE = sorted((e for e in FORMATS if e.marks), key=lambda e: (e.arguments, e.head))


def _in_a_file(text: str, read: Any) -> Any:
    """What a reader of files makes of a text that a stranger's file holds."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "a file")
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        return read(file)


def _as_record(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _reply(message: Any, **others: Any) -> str:
    return json.dumps({"choices": [{"message": message, **others}]})


BODY = Chat([{"role": "user", "content": "?"}]).body(
    ChatSettings(model="m", base_url="http://localhost/v1")
)
ENV = ExploreEnv()

READERS = [
    Reader(
        "toolgym.calls.parse_calls",
        lambda text: parse_calls(text, TOOLS),
        marks=CALL_MARKS,
        before=CALL_STARTS,
        after=CALL_ENDS,
    ),
    Reader(
        "toolgym.calls.parse_calls of a typed tool",
        lambda text: parse_calls(text, TYPED),
        marks=CALL_MARKS[:8],
        before=CALL_STARTS[3:8],
        after=CALL_ENDS[:3],
    ),
    Reader(
        "toolgym.calls.parse_calls, strict",
        lambda text: parse_calls(text, TOOLS, parsing="strict"),
        marks=CALL_MARKS[:2],
        before=CALL_STARTS[3:5],
        after=CALL_ENDS[:2],
    ),
    Reader(
        "toolgym.calls.parse_calls of a value",
        lambda text: parse_calls({"name": "query", "arguments": {"sql": text}}, TOOLS),
        marks=("```", "```sql\n", "'", '"'),
        before=("```sql\n", "```", "'", "SELECT 1"),
        after=("```", "'"),
    ),
    Reader(
        "toolgym.calls.parse_calls of arguments in JSON",
        lambda text: parse_calls({"name": "answer", "arguments": text}, TOOLS),
        marks=('{"value": ', '"value"', "[", ","),
        before=("{", '{"value": ', '{"value": "', '{"value": ['),
        after=("}", '"}', "]}"),
    ),
    Reader("toolgym.calls.bind_call", lambda text: bind_call(text, {text: text}, TOOLS)),
    Reader(
        "toolgym.calls.bind_call of keys",
        lambda text: bind_call("describe", {text: "x", f"y{text}": "z"}, TOOLS),
    ),
    Reader(
        "toolgym.calls.bind_call of typed values",
        lambda text: bind_call("turn", {"dial": text, "to": [text], "note": {text: text}}, TYPED),
        marks=("1", "-", "true", "[1, "),
        before=("1", "-", "["),
    ),
    Reader(
        "toolgym.calls.render_call",
        lambda text: render_call("query", {"sql": text}),
    ),
    Reader(
        "toolgym.calls.parse_calls of gemma-4",
        lambda text: parse_calls(text, TOOLS),
        marks=("<|tool_call>", "call:", '<|"|>', "{", "}", "[", ",", "sql:", "<tool_call|>"),
        before=("<|tool_call>call:query{", '<|tool_call>call:query{sql:<|"|>', "call:query{sql:["),
        after=("}<tool_call|>", '<|"|>}'),
    ),
    *(_of_formats(_BY_SHAPE[i : i + 4]) for i in range(0, len(_BY_SHAPE), 4)),
    Reader(
        "toolgym.sanitize.escape_control_tokens",
        escape_control_tokens,
        marks=("<|", "|>", "<think>", "</s>", "[INST]", "<tool_call>"),
        before=("<|im_start|>",),
    ),
    Reader(
        "toolgym.sanitize.unescape_control_tokens",
        unescape_control_tokens,
        marks=("<\\", "\\", "<\\|", "|>", "<\\think>", "[\\INST]"),
        before=("<\\|im_start|>",),
    ),
    Reader("toolgym.sanitize.visible", visible),
    Reader(
        "toolgym.commands.play.read_action",
        lambda text: read_action(text or " ", TOOLS),
        marks=("query(", "query ", "'"),
        before=("query", "query(", "answer [", "query '"),
        after=(")", "'"),
    ),
    Reader(
        "toolgym.chat.reply.read_reply",
        lambda text: read_reply(text, BODY),
        (NotAReply,),
        marks=('"choices"', '{"choices": [', '{"message": {', '"content": "'),
        before=('{"choices": [{"message": {"content": "', '{"choices": ', '{"a": '),
        after=('"}}]}', "}", "]}"),
    ),
    Reader(
        "toolgym.chat.reply.read_reply of a content",
        lambda text: read_reply(_reply({"content": text}), BODY),
        (NotAReply,),
    ),
    Reader(
        "toolgym.chat.reply.read_reply of arguments",
        lambda text: read_reply(
            _reply(
                {"tool_calls": [{"function": {"name": text, "arguments": text}}]},
                finish_reason=text,
            ),
            BODY,
        ),
        (NotAReply,),
    ),
    Reader(
        "toolgym.runs.files.read_object",
        lambda text: _in_a_file(text, read_object),
        (ConfigurationError,),
        before=('{"a": ', '{"a": "'),
        after=("}", '"}'),
    ),
    Reader(
        "toolgym.runs.files.read_lines",
        lambda text: _in_a_file(text, lambda f: list(read_lines(f, _as_record, lambda: None))),
        (ConfigurationError,),
        before=('{"a": ', '{"a": "', "{}\n"),
        after=("}", '"}\n', "\n{}"),
    ),
    Reader(
        "toolgym.env.ToolEnv.step and what is told of it",
        lambda text: _one_step(text),
        marks=CALL_MARKS[:4],
        before=CALL_STARTS[:6],
        after=CALL_ENDS[:2],
    ),
    Reader(
        "toolgym.episode.without_notice",
        without_notice,
        marks=("\n(3 calls left)", "\n(", "3", " calls left", "no calls left"),
        before=("\n(",),
        after=("\n(3 calls left)", "\n(no calls left: the episode is over)"),
    ),
    Reader(
        "adapters.training.models.demonstrations.without_conditions",
        demonstrations.without_conditions,
        marks=("SELECT ", " FROM ", " WHERE ", "(", "'", '"', "/*", "--", " AND "),
        before=("SELECT 1 FROM t WHERE ", "SELECT "),
        after=(")", "'", " LIMIT 1"),
    ),
]


def _one_step(text: str) -> Any:
    ENV.reset(seed=1)
    result = ENV.step(text)
    return result, [turn_messages(turn) for turn in ENV.episode.turns]


for _pattern in (preflight._NULL, preflight._NULL_ARGUMENT):
    READERS.append(
        Reader(
            f"adapters.reference.preflight, its pattern {_pattern.pattern}",
            _pattern.search,
            marks=(": ", "null"),
            before=(":",),
        )
    )
