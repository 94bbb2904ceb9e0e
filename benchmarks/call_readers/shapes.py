"""The formats that are compared, and which detectors of sglang read each.

They are those of the table (`toolgym.calls.families`), and a few other spellings of one of them
that a detector wants. Marks inside of values stand as they are, unlike in `render_calls`, which
escapes them where it can: models do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.call_readers.written import Call, Shape, json_text
from toolgym.calls import FORMATS, Format, render_calls


@dataclass(frozen=True)
class Detector:
    """A detector of sglang.

    Attributes:
        name: As a server's option names it.
        prompt: What it expects in front, though the model's prompt ends with it.
    """

    name: str
    prompt: str = ""


def _of(entry: Format) -> Shape:
    marks = (*entry.marks, *entry.frame, *entry.closes)
    return Shape(
        entry.name,
        partial(_written, entry),
        entry.thinking,
        entry.stop[0] if entry.stop else "",
        most=3 if entry.parallel else 1,
        python=entry.arguments == "Python",
        alone=entry.name in ("functionary-v2", "functionary-v3.2", "glm-4"),
        known=marks,
    )


def _written(entry: Format, calls: Sequence[Call]) -> str:
    groups = [calls] if entry.parallel else [[call] for call in calls]
    text = "\n".join(render_calls(group, format=entry.name) for group in groups)
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


_ESCAPED = re.compile(r"\\u(003c|005b|005d|273f)")


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _in_pairs(calls: Sequence[Call], *, name: str, pair: str, end: str) -> str:
    return "".join(
        name.format(call)
        + "".join(pair.format(key, _bare(value)) for key, value in arguments.items())
        + end
        for call, arguments in calls
    )


def _other(name: str, write: Callable[[Sequence[Call]], str], of: str) -> Shape:
    shape = next(shape for shape in TABLE if shape.name == of)
    return Shape(name, write, shape.thought, shape.end, known=shape.known)


_GLM = {"pair": "<arg_key>{}</arg_key><arg_value>{}</arg_value>", "end": "</tool_call>"}
TABLE = [_of(entry) for entry in FORMATS]
SHAPES = [
    *TABLE,
    _other("glm, on one line", partial(_in_pairs, name="<tool_call>{}", **_GLM), "glm"),
    _other(
        "qwen3-coder, on one line",
        partial(
            _in_pairs,
            name="<tool_call>\n<function={}>\n",
            pair="<parameter={}>{}</parameter>\n",
            end="</function>\n</tool_call>\n",
        ),
        "qwen3-coder",
    ),
]
DETECTORS: dict[str, tuple[Detector, ...]] = {
    "hermes": (Detector("qwen25"), Detector("hermes"), Detector("trinity")),
    "qwen3-coder": (Detector("qwen3_coder"),),
    "qwen3-coder, on one line": (Detector("mimo"),),
    "glm": (Detector("glm45"), Detector("ling3"), Detector("poolside_v1")),
    "glm, on one line": (Detector("glm47"),),
    "hunyuan-3": (Detector("hunyuan"),),
    "iquest": (Detector("iquest_q1"),),
    "k2-horizon": (Detector("k2_horizon"),),
    "mistral": (Detector("mistral"),),
    "mistral-args": (Detector("mistral"),),
    "llama": (Detector("llama3"),),
    "json": (Detector("llama3"),),
    "internlm": (Detector("interns1"),),
    "command-a": (Detector("cohere_command4"),),
    "apertus": (Detector("apertus2509"),),
    "inkling": (Detector("inkling"),),
    "gigachat-3": (Detector("gigachat3"),),
    "deepseek-v3": (Detector("deepseekv3"),),
    "deepseek-v3.1": (Detector("deepseekv31"),),
    "deepseek-v3.2": (Detector("deepseekv32"),),
    "deepseek-v4": (Detector("deepseekv4"),),
    "deepseek-v4.1": (Detector("deepseekv41"),),
    "kimi-k2": (Detector("kimi_k2"),),
    "kimi-k3": (Detector("kimi_k3"),),
    "harmony": (Detector("gpt-oss", prompt="<|start|>assistant"),),
    "python": (Detector("pythonic"),),
    "llama-4": (Detector("pythonic"),),
    "lfm2": (Detector("lfm2"),),
    "minimax-m2": (Detector("minimax-m2"),),
    "minimax-m3": (Detector("minimax-m3"),),
    "dots": (Detector("dots"),),
    "gigachat-3.5": (Detector("gigachat35"),),
    "step-3": (Detector("step3"),),
    "muse": (Detector("muse", prompt=" to=describe<|message|>"),),
    "minicpm-5": (Detector("minicpm5"),),
    "gemma-4": (Detector("gemma4"),),
}
"""By the name of a format; a few have several, since the families differ in what they forgive."""
