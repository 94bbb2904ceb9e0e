"""Reads the workflows that agents wrote out of recorded rollouts.

In `aflowgym/Compose-v0` each call of `run_workflow` is a workflow; in one-shot mode, so is a message
that could not be parsed. In `aflowgym/Operate-v0` the operators that ran form one workflow together:
the sequence of the calls, `copies` as a list. Refused calls are no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aflowgym.dsl import Limits, Node, parse
from aflowgym.dsl.checking import DEFAULT_LIMITS
from aflowgym.dsl.nodes import Cond, Done, ListOf, Op, Repeat, children, operators_of, sequence
from aflowgym.operators.catalogue import Registry, key
from aflowgym.remembering import remembered
from aflowgym.tasks.task import KINDS
from toolgym.sanitize import encodable

FALLBACK: Final = "fallback"
"""Error code of an output that the trainer of a log replaced by a default workflow."""
STRUCTURES: Final = {
    "single operator": "One operator.",
    "chain": "Operators in a row.",
    "condition": "With a condition, and neither list nor loop.",
    "list": "With a list of branches, and neither condition nor loop.",
    "loop": "With a loop, and neither condition nor list.",
    "mixed": "With two or three of condition, list and loop.",
}
"""The classes of workflows. Every workflow is in exactly one."""
_CONSTRUCTS: Final[dict[type, str]] = {Cond: "condition", ListOf: "list", Repeat: "loop"}
_ANY_SIZE: Final = Limits(calls=1_000_000, depth=1_000, operators=1_000_000)
_MOST_COPIES: Final = 5
_KIND: Final = re.compile(rf"Kind: ({'|'.join(KINDS)})\b")
_ERROR: Final = re.compile(r"error\[([\w-]{1,40})\]")


@dataclass(frozen=True)
class Workflow:
    """A workflow that an agent wrote.

    Attributes:
        text: Its canonical text; "" if it is not valid.
        codes: The sorted error codes of a workflow that is not valid.
        structure: A key of `STRUCTURES`; "" if it is not valid.
        operators: The names of its operators, in reading order.
    """

    text: str = ""
    codes: tuple[str, ...] = ()
    structure: str = ""
    operators: tuple[str, ...] = ()


class WorkflowReader:
    """Reads the workflows of rollouts.

    Args:
        operators: The operators that the agents could use.
    """

    def __init__(self, operators: Registry) -> None:
        self.operators = operators
        self._names = {key(name): name for name in operators}
        self._parse = remembered(4096)(self._parse_anew)  # policies repeat their workflows

    def workflows(self, rollout: Mapping[str, Any]) -> list[Workflow]:
        """Return the workflows of a rollout in order.

        Args:
            rollout: The fields of an `EpisodeRecord`.
        """
        kind = kind_of(rollout)
        found: list[Workflow] = []
        steps: list[Node] = []
        refused: set[str] = set()
        for turn in rollout["turns"]:
            if not turn["calls"] and "invalid_workflow" in turn["errors"]:
                found.append(self._submitted(turn["action"], kind, "invalid_workflow"))
            results: Sequence[str] = turn.get("results") or [turn["observation"]]
            for call, result in zip(turn["calls"], results, strict=False):
                error = _ERROR.match(result)
                code = error[1] if error else ""
                arguments = call["arguments"] if isinstance(call["arguments"], Mapping) else {}
                if call["name"] == "run_workflow":
                    found.append(self._submitted(arguments.get("dsl"), kind, code))
                elif name := self._names.get(key(str(call["name"]))):
                    if code:
                        refused.add(code)
                    else:
                        steps.append(_step(name, arguments.get("copies")))
        if steps:
            found.append(self._parse(str(sequence(steps)), "", _ANY_SIZE))
        elif refused:
            found.append(Workflow(codes=tuple(sorted(refused))))
        return found

    def _submitted(self, text: Any, kind: str, code: str) -> Workflow:
        if code == FALLBACK:
            return Workflow(codes=(code,))
        workflow = self._parse(text if isinstance(text, str) else "", kind, DEFAULT_LIMITS)
        # The environment refuses some workflows that can be parsed, such as those with instructions.
        return Workflow(codes=(code,)) if code and workflow.text else workflow

    def _parse_anew(self, text: str, kind: Any, limits: Limits) -> Workflow:
        parsed = parse(text, kind=kind or None, operators=self.operators, limits=limits)
        node = parsed.workflow
        if node is None:
            return Workflow(codes=tuple(sorted({error.code for error in parsed.errors})))
        used = tuple(each.name for each in operators_of(node))
        return Workflow(encodable(str(node)), (), structure(node), used)


def structure(node: Node) -> str:
    """Return the class of a workflow, a key of `STRUCTURES`.

    >>> structure(parse("Custom -> Review ? Revise : done").workflow)
    'condition'
    """
    found = {_CONSTRUCTS[type(each)] for each in _nodes(node) if type(each) in _CONSTRUCTS}
    if len(found) > 1:
        return "mixed"
    return found.pop() if found else "single operator" if isinstance(node, Op) else "chain"


def _nodes(node: Node | Done) -> Iterator[Node | Done]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def kind_of(rollout: Mapping[str, Any]) -> str:
    """Return the kind of task, from the last line of the question; "" if it is unknown."""
    match = _KIND.match(rollout.get("question", "").rpartition("\n")[2])
    return match[1] if match else ""


def _step(name: str, copies: Any) -> Node:
    """Return the workflow of one call of an operator in `aflowgym/Operate-v0`."""
    one = Op(name)
    return ListOf((one,) * copies) if type(copies) is int and 1 < copies <= _MOST_COPIES else one
