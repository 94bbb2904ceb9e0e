"""The formats that are compared: how each is written, and which detectors of sglang read it.

A stop token and the tags of thinking belong to a family's chat template, not to its calls, so they
stand here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.toolgym.calls.oracles.written import Call, Shape, json_text


@dataclass(frozen=True)
class Detector:
    """A detector of sglang.

    Attributes:
        name: As a server's option names it.
        prompt: What it expects in front, though the model's prompt ends with it.
    """

    name: str
    prompt: str = ""


THINK = ("<think>", "</think>")


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _hermes(calls: Sequence[Call]) -> str:
    return "\n".join(
        f"<tool_call>\n{json_text({'name': name, 'arguments': arguments})}\n</tool_call>"
        for name, arguments in calls
    )


def _xml(calls: Sequence[Call]) -> str:
    texts = []
    for name, arguments in calls:
        values = "".join(
            f"<parameter={k}>\n{_bare(v)}\n</parameter>\n" for k, v in arguments.items()
        )
        texts.append(f"<tool_call>\n<function={name}>\n{values}</function>\n</tool_call>")
    return "\n".join(texts)


def _glm(calls: Sequence[Call], gap: str = "\n") -> str:
    texts = []
    for name, arguments in calls:
        pairs = "".join(
            f"<arg_key>{k}</arg_key>{gap}<arg_value>{_bare(v)}</arg_value>{gap}"
            for k, v in arguments.items()
        )
        texts.append(f"<tool_call>{name}{gap}{pairs}</tool_call>")
    return "\n".join(texts)


def _glm47(calls: Sequence[Call]) -> str:
    return _glm(calls, "").replace("</tool_call>\n<tool_call>", "</tool_call><tool_call>")


def _mistral(calls: Sequence[Call]) -> str:
    listed = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return "[TOOL_CALLS] " + json_text(listed)


def _mistral_args(calls: Sequence[Call]) -> str:
    return "".join(f"[TOOL_CALLS]{name}[ARGS]{json_text(arguments)}" for name, arguments in calls)


def _llama(calls: Sequence[Call]) -> str:
    return "<|python_tag|>" + "; ".join(
        json_text({"name": name, "parameters": arguments}) for name, arguments in calls
    )


def _llama_json(calls: Sequence[Call]) -> str:
    return "".join(json_text({"name": n, "parameters": arguments}) for n, arguments in calls)


def _python(calls: Sequence[Call]) -> str:
    return (
        "["
        + ", ".join(
            f"{name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"
            for name, arguments in calls
        )
        + "]"
    )


def _kimi(calls: Sequence[Call]) -> str:
    body = "".join(
        f"<|tool_call_begin|>functions.{name}:{k}<|tool_call_argument_begin|>"
        f"{json_text(arguments)}<|tool_call_end|>"
        for k, (name, arguments) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{body}<|tool_calls_section_end|>"


def _deepseek(calls: Sequence[Call]) -> str:
    body = "".join(
        f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{json_text(arguments)}<｜tool▁call▁end｜>"
        for name, arguments in calls
    )
    return f"<｜tool▁calls▁begin｜>{body}<｜tool▁calls▁end｜>"


def _minimax(calls: Sequence[Call]) -> str:
    body = ""
    for name, arguments in calls:
        values = "".join(
            f'<parameter name="{k}">{_bare(v)}</parameter>\n' for k, v in arguments.items()
        )
        body += f'<invoke name="{name}">\n{values}</invoke>\n'
    return f"<minimax:tool_call>\n{body}</minimax:tool_call>"


SHAPES = [
    Shape("hermes", _hermes, THINK, "<|im_end|>"),
    Shape("xml", _xml, THINK, "<|im_end|>"),
    Shape("glm", _glm, THINK, "<|observation|>"),
    Shape("glm47", _glm47, THINK, "<|observation|>"),
    Shape("mistral", _mistral, ("[THINK]", "[/THINK]"), "</s>"),
    Shape("mistral_args", _mistral_args, ("[THINK]", "[/THINK]"), "</s>"),
    Shape("llama", _llama, None, "<|eom_id|>"),
    Shape("llama_json", _llama_json, None, "<|eot_id|>", most=1),
    Shape("python", _python, None, "<|eot_id|>", python=True),
    Shape("kimi_k2", _kimi, THINK, "<|im_end|>"),
    Shape("deepseek_v31", _deepseek, THINK, "<｜end▁of▁sentence｜>"),
    Shape("minimax_m2", _minimax, THINK, "[e~["),
]
DETECTORS = {
    "hermes": (Detector("qwen25"), Detector("hermes")),
    "xml": (Detector("qwen3_coder"),),
    "glm": (Detector("glm45"),),
    "glm47": (Detector("glm47"),),
    "mistral": (Detector("mistral"),),
    "mistral_args": (Detector("mistral"),),
    "llama": (Detector("llama3"),),
    "llama_json": (Detector("llama3"),),
    "python": (Detector("pythonic"),),
    "kimi_k2": (Detector("kimi_k2"),),
    "deepseek_v31": (Detector("deepseekv31"),),
    "minimax_m2": (Detector("minimax-m2"),),
}
NOT_YET = {"kimi_k2", "deepseek_v31", "minimax_m2"}
"""Formats that are not read yet."""
