"""The workflows that the agents of some rollouts wrote, read out of the records.

In `aflowgym/Compose-v0` each call of `run_workflow` is one workflow, valid or not. It is read anew,
since a record holds only the text; one that can be read and was refused all the same (an operator
that does not run on this kind of task, an instruction) is invalid by the codes of that refusal.

In `aflowgym/Operate-v0` the operators that ran make one workflow together, the sequence in which
they were called, `copies` as a list. An operator that was refused left no trace in the state, so it
is no part of it; a sequence that ends in candidates, among which nobody chose, is not valid.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aflowgym.dsl import CODES, Limits, Node, parse
from aflowgym.dsl.checking import DEFAULT_LIMITS, EMPTY, Checker
from aflowgym.dsl.diagnostics import has_error
from aflowgym.dsl.nodes import Cond, ListOf, Op, Repeat, children, operators_of, sequence
from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.operator import Operators, key
from aflowgym.remembering import remembered
from aflowgym.tasks.task import KINDS
from toolgym.statistics import Rollout

RUN_WORKFLOW: Final = "run_workflow"

#: The classes of workflows, and what each is. Every workflow is in one.
STRUCTURES: Final = {
    "single operator": "One operator.",
    "chain": "Operators in a row.",
    "condition": "With a condition, and neither list nor loop.",
    "list": "With a list of branches, and neither condition nor loop.",
    "loop": "With a loop, and neither condition nor list.",
    "mixed": "With two or three of condition, list and loop.",
}
_CONSTRUCTS: Final[dict[type, str]] = {Cond: "condition", ListOf: "list", Repeat: "loop"}
# How long an episode may be, its environment says, not the language.
_ANY_SIZE: Final = Limits(calls=1_000_000, depth=1_000, operators=1_000_000)
_MOST_COPIES: Final = 5
_KIND = re.compile(rf"Kind: ({'|'.join(KINDS)})\b")
_CODE = re.compile(r"\bE-[A-Z]+(?:-[A-Z]+)*")
# As `envs.texts.usage_line` tells it, in both wordings that runs were recorded with. Python
# reads no number of thousands of digits, which a stranger's record may hold.
_CALLS = re.compile(r"^(?:Took )?(\d{1,12}) calls?(?: of the model)?, \d+ tokens\.$", re.MULTILINE)
# Texts whose reading is remembered: those of a policy repeat, and those of a broken one never do.
_REMEMBERED: Final = 4096


@dataclass(frozen=True)
class Workflow:
    """A workflow as it is counted.

    Attributes:
        text: Its canonical text; empty if it is not valid.
        codes: Why it is not, each code once, sorted.
        remarks: It was read with a warning or a note.
        structure: A key of `STRUCTURES`; empty if it is not valid.
        operators: How often each occurs in it.
    """

    text: str = ""
    codes: tuple[str, ...] = ()
    remarks: bool = False
    structure: str = ""
    operators: Counter[str] = field(default_factory=Counter)

    @property
    def valid(self) -> bool:
        """It can run."""
        return bool(self.text)


@dataclass(frozen=True)
class Reading:
    """One rollout.

    Attributes:
        phase: `before`, `grpo` or `after`; empty where it belongs to no run.
        step: Of the training; None around it.
        kind: Of the task; empty where its question does not tell.
        workflows: What its agent wrote, in order.
        correct: It ended with the right answer.
        scored: No fault of the machine spoilt it.
        calls: Calls of a model that its operators came to.
    """

    phase: str
    step: int | None
    kind: str
    workflows: tuple[Workflow, ...]
    correct: bool
    scored: bool
    calls: int

    @property
    def valid(self) -> list[Workflow]:
        """The valid ones among its workflows."""
        return [workflow for workflow in self.workflows if workflow.valid]

    @property
    def last(self) -> str:
        """The last valid workflow, which it ended with; empty if there is none."""
        return next((each.text for each in reversed(self.workflows) if each.valid), "")


def structure(node: Node) -> str:
    """The class of a workflow.

    >>> structure(parse("Custom -> Review ? Revise : done").workflow)
    'condition'
    """
    kinds = {_CONSTRUCTS[type(each)] for each in _nodes(node) if type(each) in _CONSTRUCTS}
    if len(kinds) > 1:
        return "mixed"
    return kinds.pop() if kinds else "single operator" if isinstance(node, Op) else "chain"


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def readings(rollouts: Iterable[Rollout], operators: Operators = OPERATORS) -> Iterator[Reading]:
    """The workflows that the agents wrote, rollout by rollout; none is held longer than it is read.

    Args:
        rollouts: Episode records, or lines of a run's `rollouts.jsonl`.
        operators: The operators that the agents could name.
    """
    return map(_Reader(operators).reading, rollouts)


class _Reader:
    def __init__(self, operators: Operators) -> None:
        self.operators = operators
        self.tools = {key(name): name for name in operators}
        self._read = remembered(_REMEMBERED)(self._parse)

    def reading(self, rollout: Rollout) -> Reading:
        turns: Sequence[Mapping[str, Any]] = _value(rollout, "turns", ())
        kind = _kind(_value(rollout, "question", ""))
        written = [
            self._submitted_workflow(turn, call["arguments"], kind)
            for turn in turns
            for call in turn["calls"]
            if call["name"] == RUN_WORKFLOW
        ]
        return Reading(
            phase=_value(rollout, "phase", ""),
            step=_value(rollout, "step", None),
            kind=kind,
            workflows=(*written, *self._operated_workflow(turns)),
            correct=_value(rollout, "correct", False),
            scored=_value(rollout, "scored", True),
            calls=sum(map(_calls, turns)),
        )

    def _submitted_workflow(self, turn: Mapping[str, Any], arguments: Any, kind: str) -> Workflow:
        text = arguments.get("dsl") if isinstance(arguments, Mapping) else None
        workflow = self._read(text if isinstance(text, str) else "", DEFAULT_LIMITS, kind)
        refused = workflow.valid and len(turn["errors"]) == len(turn["calls"])
        return Workflow(codes=_refusal(turn)) if refused else workflow

    def _operated_workflow(self, turns: Sequence[Mapping[str, Any]]) -> list[Workflow]:
        """The workflow that the operators make which were called one by one; at most one."""
        steps: list[Node] = []
        state, sound = EMPTY, True
        refused: set[str] = set()
        for turn in turns:
            failed = len(turn["errors"]) == len(turn["calls"])
            for call in turn["calls"]:
                name = self.tools.get(key(str(call["name"])))
                if name is None:
                    continue
                node = _step_of_call(name, call["arguments"])
                fits, after = self._check_step(node, state)
                # Which of several calls failed was not recorded; the types tell.
                if failed or (turn["errors"] and not (sound and fits)):
                    refused.update(turn["errors"])
                else:
                    steps.append(node)
                    state, sound = after, sound and fits
        if steps:
            return [self._read(str(sequence(steps)), _ANY_SIZE)]
        return [Workflow(codes=tuple(sorted(refused)))] if refused else []

    def _check_step(self, node: Node, state: int) -> tuple[bool, int]:
        """Whether the types of one more step fit, and the state behind it."""
        checker = Checker(self.operators, None)
        after = checker.walk(node, state)
        return not has_error(checker.found), after

    def _parse(self, text: str, limits: Limits, kind: Any = "") -> Workflow:
        parsed = parse(text, kind=kind or None, operators=self.operators, limits=limits)
        codes = tuple(sorted({error.code for error in parsed.errors}))
        node = parsed.workflow
        remarks = bool(parsed.diagnostics)
        if node is None:
            return Workflow(codes=codes, remarks=remarks)
        used = Counter(each.name for each in operators_of(node))
        return Workflow(str(node), codes, remarks, structure(node), used)


def _calls(turn: Mapping[str, Any]) -> int:
    """Calls of a model that one turn tells of: each of its calls begins with them, if it ran."""
    return sum(map(int, _CALLS.findall(str(turn["observation"]))[: len(turn["calls"])]))


def _kind(question: str) -> str:
    """The kind of task that the last line of a question tells."""
    match = _KIND.match(question.rpartition("\n")[2])
    return match[1] if match else ""


def _step_of_call(name: str, arguments: Any) -> Node:
    """The step that one call of an operator stands for."""
    copies = arguments.get("copies") if isinstance(arguments, Mapping) else None
    one = Op(name)
    return ListOf((one,) * copies) if type(copies) is int and 1 < copies <= _MOST_COPIES else one


def _refusal(turn: Mapping[str, Any]) -> tuple[str, ...]:
    """By which codes of the language a workflow was refused, or else by which others."""
    codes = set(_CODE.findall(str(turn["observation"]))) & CODES.keys()
    return tuple(sorted(codes or set(turn["errors"])))


def _value(rollout: Rollout, name: str, missing: Any) -> Any:
    if isinstance(rollout, Mapping):
        return rollout.get(name, missing)
    return getattr(rollout, name, missing)
