"""Scripted policies for the workflow environments: an expert, and a novice for demonstrations.

The expert runs a workflow that scores well with this preset on this kind of task. If the first
workflow produces no solution, or a solution that fails a public test, the expert runs a second one.
The expert has no access to the gold answer or to the random draws.

The novice runs one workflow from `TYPICAL`, which can be good or bad. The novice chooses workflows
with the generator that suits the kind of task three times as often as other workflows. Therefore a
model that imitates the novice still has to learn which workflows are good.

In `aflowgym/Operate-v0`, both policies call the operators of a workflow one by one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Generator, Iterable, Mapping
from typing import Any, Final

from aflowgym.dsl import parse
from aflowgym.dsl.nodes import DONE, Cond, Done, ListOf, Node, Op, Repeat, Seq, steps_of
from aflowgym.envs.base import WorkflowEnv, solution_in
from aflowgym.execution.errors import run_call
from aflowgym.operators import OPERATORS
from aflowgym.sampling import REFERENCE_WORKFLOWS

Play = Generator[Any, str, None]

FIRST: Final[Mapping[tuple[str, str], str]] = {
    ("teaching", "math"): REFERENCE_WORKFLOWS["math"]["five programs"],
    ("teaching", "code"): REFERENCE_WORKFLOWS["code"]["tested"],
    ("teaching", "qa"): REFERENCE_WORKFLOWS["qa"]["reviewed"],
    ("paper", "math"): REFERENCE_WORKFLOWS["math"]["program"],
    ("paper", "code"): REFERENCE_WORKFLOWS["code"]["tested"],
    ("paper", "qa"): REFERENCE_WORKFLOWS["qa"]["formatted"],
}
"""The expert's first workflow, by preset and kind."""
SECOND: Final[Mapping[str, str]] = {
    "math": "AnswerGenerate -> Review ? Revise : done",
    "code": "Programmer -> Review ? Revise : done",
    "qa": "Custom -> Format",
}
"""The expert's second workflow, by kind."""
TYPICAL: Final = (
    "Custom",
    "AnswerGenerate",
    "Programmer",
    "CustomCodeGenerate",
    "Custom -> Format",
    "AnswerGenerate -> Format",
    "Custom -> Revise",
    "Programmer -> Format",
    "Custom -> Review ? Revise : done",
    "AnswerGenerate -> Review ? Revise : done",
    "AnswerGenerate -> (Review -> Revise) * 3 -> Format",
    "Custom -> Programmer -> Review ? Revise : done",
    "[Custom * 3] -> ScEnsemble",
    "[AnswerGenerate * 3] -> MdEnsemble",
    "[Programmer * 5] -> ScEnsemble",
    "[Custom, AnswerGenerate] -> ScEnsemble",
    "CustomCodeGenerate -> Test",
    "CustomCodeGenerate -> Test * 3",
    "[CustomCodeGenerate * 2] -> ScEnsemble -> Test",
)
"""Typical workflows, good and bad. Those with `Test` are for code tasks."""
GENERATOR: Final = {"math": "Programmer", "code": "CustomCodeGenerate", "qa": "AnswerGenerate"}
"""The operator that the novice prefers, by kind."""
_PREFERENCE: Final = 3
_FAILS_A_TEST: Final = re.compile(r"^Public tests: (?!(\d+) of \1 pass)", re.MULTILINE)


def good_workflows(env: WorkflowEnv) -> list[str]:
    """Return the expert's workflows for the task and the operators, in order of preference."""
    kind, preset = env.task.kind, getattr(getattr(env.backend, "preset", None), "name", "")
    first = FIRST.get((preset, kind), FIRST["teaching", kind])
    return _runnable(env, (first, SECOND[kind], env.example))[:2]


def typical_workflow(env: WorkflowEnv, draw: random.Random) -> list[str]:
    """Return a random workflow for the novice, which can use custom operators."""
    own = [name for name in env.operators if name not in OPERATORS]
    texts = _runnable(env, (*TYPICAL, *own, *(f"{env.example} -> {name}" for name in own)))
    liked = GENERATOR[env.task.kind]
    return draw.choices(texts, [_PREFERENCE if liked in each else 1 for each in texts])


def _runnable(env: WorkflowEnv, texts: Iterable[str]) -> list[str]:
    return [text for text in texts if _tree(env, text) is not None]


def _tree(env: WorkflowEnv, text: str) -> Node | None:
    return parse(text, kind=env.task.kind, operators=env.operators).workflow


def compose(env: WorkflowEnv, workflows: list[str], *, one_shot: bool) -> Play:
    """Write workflows until one of them produces an acceptable solution, then submit it.

    In one-shot mode, write only the first workflow.
    """
    if one_shot:
        yield workflows[0]
        return
    for dsl in workflows:
        if env.episode.steps_left > 1:  # the last step ends the episode
            observation = yield run_call(dsl)
            if _is_good(observation):
                break
    yield {"name": "answer"}


def operate(env: WorkflowEnv, workflows: list[str]) -> Play:
    """Call the operators of workflows until a solution is acceptable, then submit it."""
    for dsl in workflows:
        tree = _tree(env, dsl)
        if tree is not None:
            yield from _walk(env, tree)
        shown = (turn.observation for turn in reversed(env.episode.turns))
        if _is_good(next((text for text in shown if solution_in(text) is not None), "")):
            break
    yield {"name": "answer"}


def _walk(env: WorkflowEnv, node: Node | Done) -> Generator[Any, str, str]:
    """Call the operators of a workflow in order, and return the last observation."""
    observation = ""
    match node:
        case Op() | ListOf():
            first = node if isinstance(node, Op) else node.branches[0]
            if env.episode.steps_left > 1 and isinstance(first, Op):
                name = env.called(env.operators[first.name])
                copies = len(node.branches) if isinstance(node, ListOf) else 1
                arguments = {"copies": min(copies, 5)} if copies > 1 else {}
                observation = yield {"name": name, "arguments": arguments}
        case Seq():
            for step in node.steps:
                observation = yield from _walk(env, step)
                if "left nothing" in observation:
                    break
        case Repeat():
            for step in steps_of(node.body) * node.times:
                observation = yield from _walk(env, step)
                if "Verdict: right" in observation:
                    break
        case Cond():
            observation = yield from _walk(env, node.check)
            branch = node.fail if "Verdict: wrong" in observation else node.passed
            if branch is not DONE:
                observation = yield from _walk(env, branch)
    return observation


def _is_good(observation: str) -> bool:
    """Return whether there is a solution that fails no public test."""
    return solution_in(observation) is not None and not _FAILS_A_TEST.search(observation)
