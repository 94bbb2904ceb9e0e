"""Tool calls as the detectors of sglang read them: a process of its own, which speaks JSON lines.

Run by the interpreter of an environment that holds sglang, never imported here:

    {"detector": "kimi_k2", "text": "...", "tools": [...]}
    {"calls": [["describe", {"table_name": "singer"}]], "error": ""}

Only the detectors are wanted, and they need neither torch nor a device. So `sglang` is entered as a
bare package, which runs none of its own imports, and what the detectors import for serving alone
(`sglang.utils`, xgrammar) is replaced by empty classes. A tool that is not offered is reported like
any other (`SGLANG_FORWARD_UNKNOWN_TOOLS`): to tell what was written is all that is asked here.

Some detectors do not come to an end on damaged text. Each text gets `SECONDS` of processor time,
far more than any answer takes, and then counts as one that the detector cannot read.
"""

import importlib.util
import json
import logging
import os
import resource
import signal
import sys
import types
from typing import Any

from pydantic import BaseModel

os.environ["SGLANG_FORWARD_UNKNOWN_TOOLS"] = "1"
logging.disable(logging.CRITICAL)


class _Empty(types.ModuleType):
    """A module that has every name; each is an empty class."""

    __path__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (BaseModel,), {})


def _detectors() -> tuple[dict[str, Any], Any]:
    """The detectors by the names that a server knows them by, and the class of a tool."""
    found = importlib.util.find_spec("sglang")
    if found is None or not found.submodule_search_locations:
        sys.exit("sglang is not installed for this interpreter: pip install --no-deps sglang")
    bare = types.ModuleType("sglang")
    bare.__path__ = list(found.submodule_search_locations)
    utils = types.ModuleType("sglang.utils")
    utils.convert_json_schema_to_str = str  # type: ignore[attr-defined]
    sys.modules |= {"sglang": bare, "sglang.utils": utils}
    for name in ("xgrammar", "xgrammar.structural_tag"):
        sys.modules[name] = _Empty(name)
    protocol = importlib.import_module("sglang.srt.entrypoints.openai.protocol")
    parser = importlib.import_module("sglang.srt.function_call.function_call_parser")
    return dict(parser.FunctionCallParser.ToolCallParserEnum), protocol.Tool


SECONDS, MEMORY = 0.25, 4 << 30


def _out_of_time(number: int, frame: Any) -> None:
    raise TimeoutError(f"no answer in {SECONDS} seconds")


def _calls(detector: Any, text: str, tools: list[Any]) -> list[list[Any]]:
    """Names and arguments; arguments that are no JSON stay the text that they are."""
    calls = []
    for call in detector.detect_and_parse(text, tools).calls:
        try:
            arguments = json.loads(call.parameters)
        except ValueError:
            arguments = call.parameters
        calls.append([call.name, arguments])
    return calls


def main() -> None:
    """Answer each line of the input by one of the output; the first output is the names known."""
    detectors, tool_class = _detectors()
    signal.signal(signal.SIGVTALRM, _out_of_time)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    print(json.dumps(sorted(detectors)), flush=True)
    offered: dict[str, list[Any]] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        schemas = json.dumps(asked["tools"])
        if schemas not in offered:
            offered[schemas] = [tool_class(**schema) for schema in asked["tools"]]
        answer: dict[str, Any] = {"calls": [], "error": ""}
        try:
            detector = detectors[asked["detector"]]()
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            answer["calls"] = _calls(detector, asked["text"], offered[schemas])
        except Exception as error:  # noqa: BLE001 - whatever a detector raises is its answer
            answer["error"] = f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
