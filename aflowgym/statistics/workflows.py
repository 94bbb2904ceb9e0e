"""Extract the workflows from recorded rollouts.

In `aflowgym/Compose-v0`, each call of `run_workflow` is a workflow. In one-shot mode, a message
that could not be parsed also counts as a workflow. In `aflowgym/Operate-v0`, the operators that
were run form one workflow: the sequence of the calls, in which a call with `copies` is a list.
Refused calls are excluded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from aflowgym.dsl import CODES, Limits, Node, parse
from aflowgym.dsl.nodes import printed
from aflowgym.operators import Operators
from aflowgym.remembering import remembered
from toolgym.sanitize import encodable

STRUCTURES: Final = ("single operator", "chain", "condition", "list", "loop", "mixed")
"""The classes of workflows.

"condition", "list" and "loop" contain only this construct, at any depth; "mixed" contains several
of them; "single operator" and "chain" contain none of them.
"""
ANY_SIZE: Final = Limits(calls=1_000_000, depth=1_000, operators=1_000_000)
_MOST_COPIES: Final = 5
_ERROR: Final = re.compile(r"error\[([\w-]{1,40})\]")
_CODE: Final = re.compile(r"\bE(?:-[A-Z]+)+")


def workflows_of(
    rollout: Mapping[str, Any], operators: Operators
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the workflows of a rollout, each with its error codes.

    Each workflow is in its canonical form, or "" if it is invalid.

    Args:
        rollout: The fields of an `EpisodeRecord`, or one output of `read_log`.
        operators: The operators that were available to the agent.
    """
    if "workflow" in rollout:
        yield ("", ("fallback",)) if rollout["fallback"] else _read(rollout["workflow"], operators)
        return
    tools = {operator.tool: name for name, operator in operators.items()}
    steps: list[str] = []
    refused: set[str] = set()
    for turn in rollout["turns"]:
        calls = turn["calls"]
        if not calls and "invalid_workflow" in turn["errors"]:
            calls = [{"name": "run_workflow", "arguments": {"dsl": turn["action"]}}]
        for call, result in zip(calls, turn.get("results") or [turn["observation"]], strict=False):
            error = _ERROR.match(result)
            if call["name"] == "run_workflow":
                text, codes = _read(str(call["arguments"].get("dsl", "")), operators)
                if error and text:  # the environment refused it, for example for this kind of task
                    found = set(_CODE.findall(result)) & CODES.keys()
                    text, codes = "", tuple(sorted(found or {error[1]}))
                yield text, codes
            elif name := tools.get(call["name"]):
                copies = call["arguments"].get("copies")
                if error:
                    refused.add(error[1])
                elif isinstance(copies, int) and copies > 1:
                    steps.append(f"[{', '.join([name] * min(copies, _MOST_COPIES))}]")
                else:
                    steps.append(name)
    if steps:
        yield _read(" -> ".join(steps), operators, ANY_SIZE)
    elif refused:
        yield "", tuple(sorted(refused))


@remembered(4096)  # policies repeat their workflows
def _read(
    text: str, operators: Operators, limits: Limits | None = None
) -> tuple[str, tuple[str, ...]]:
    parsed = parse(text, operators=operators, limits=limits or Limits())
    codes = tuple(sorted({error.code for error in parsed.errors}))
    return encodable(str(parsed.workflow)) if parsed.workflow else "", codes


def structure(node: Node) -> str:
    """Return the class of a workflow, one of `STRUCTURES`.

    >>> structure(parse("Custom -> Review ? Revise : done").workflow)
    'condition'
    """
    text = printed(node, instructions=False)
    signs = {"?": "condition", "[": "list", "*": "loop"}
    found = [name for sign, name in signs.items() if sign in text]
    if len(found) > 1:
        return "mixed"
    return found[0] if found else "chain" if "->" in text else "single operator"
