"""The players of the workflow environments: an expert, and a novice.

The expert has a small table: for each preset and kind of task, a short workflow of
`aflowgym.REFERENCE_WORKFLOWS` that scores well. It reads the kind in the question, and from the
result whether there is a solution and whether the public tests pass; it has seen neither gold nor
draws, so luck decides whether it is right.

The novice knows how to call the tools, has heard which operator is for which kind, and knows not
what is good: it runs a typical workflow, rather one with that operator, and now and then one whose
types do not fit, which it then corrects as it is told. That is what a model imitates that has yet
to learn which workflow suits which kind.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Generator, Mapping
from typing import Any, Final

from aflowgym.envs.base import WorkflowEnv
from aflowgym.envs.texts import solution_in
from aflowgym.execution.errors import run_call
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
"""By preset and kind, what the expert runs first."""
SECOND: Final[Mapping[str, str]] = {
    "math": "AnswerGenerate -> Review ? Revise : done",
    "code": "Programmer -> Review ? Revise : done",
    "qa": "Custom -> Format",
}
"""By kind, what is tried where the first one leaves no solution, or one that fails a test."""

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
"""Workflows as people write them, good and bad ones; the last three are for code tasks."""
_CODE_ONLY: Final = 3
GENERATOR: Final = {"math": "Programmer", "code": "CustomCodeGenerate", "qa": "AnswerGenerate"}
"""By kind, the operator that the novice has heard is good for it."""
_GENERATORS: Final[Mapping[str, str]] = {
    "Custom": "custom",
    "AnswerGenerate": "answer_generate",
    "Programmer": "programmer",
    "CustomCodeGenerate": "custom_code_generate",
}
_LIKING: Final = 3
"""How many times likelier that makes a workflow."""
_ILL_TYPED: Final = ("Custom -> ScEnsemble", "[Custom, Custom] -> Review", "Review -> Revise")
_STUMBLES: Final = 0.08
_EXAMPLE: Final = "This works: "
_TESTED: Final = re.compile(r"^Public tests: (\d+) of (\d+) pass", re.MULTILINE)


def compose(env: WorkflowEnv) -> Play:
    """Play `aflowgym/Compose-v0` well."""
    kind = env.task.kind
    for dsl in (FIRST[_preset(env), kind], SECOND[kind]):
        if env.episode.steps_left > 1:  # the last step ends the episode
            observation = yield run_call(dsl)
            if _is_good(observation):
                break
    yield _answer(env)


def operate(env: WorkflowEnv) -> Play:
    """Play `aflowgym/Operate-v0` well, as those workflows go."""
    kind, preset = env.task.kind, _preset(env)
    if kind == "code":
        yield from _until(env, "custom_code_generate")
        yield from _check_and_repair(env, "test", None)
    elif kind == "math" and preset == "teaching":
        observation = yield _call("programmer", copies=5)
        if "Candidates:" in observation:
            yield _call("sc_ensemble")
    elif kind == "math":
        yield from _until(env, "programmer")
    else:
        yield from _until(env, "answer_generate")
        if preset == "teaching":
            yield from _check_and_repair(env, "review", "revise")
        yield _call("format")
    yield _answer(env)


def novice_composes(env: WorkflowEnv, draw: random.Random) -> Play:
    """Play `aflowgym/Compose-v0` as a beginner does: one workflow as people write them.

    One whose types do not fit is corrected as told.
    """
    kind, example = env.task.kind, ""
    typical = TYPICAL if kind == "code" else TYPICAL[:-_CODE_ONLY]
    weights = [_LIKING if GENERATOR[kind] in each else 1 for each in typical]
    if draw.random() < _STUMBLES:
        observation = yield run_call(draw.choice(_ILL_TYPED))
        example = observation.partition(_EXAMPLE)[2]
    if example:
        yield json.loads(example.splitlines()[0])
    else:
        yield run_call(draw.choices(typical, weights)[0])
    yield _answer(env)


def novice_operates(env: WorkflowEnv, draw: random.Random) -> Play:
    """Play `aflowgym/Operate-v0` as a beginner does.

    A solution is made, chosen among candidates, and perhaps checked, repaired and formatted.
    """
    weights = [_LIKING if GENERATOR[env.task.kind] == name else 1 for name in _GENERATORS]
    first = _GENERATORS[draw.choices(list(_GENERATORS), weights)[0]]
    copies = draw.choice((1, 1, 1, 3, 5))
    observation = yield _call(first, copies=copies) if copies > 1 else _call(first)
    if "Candidates:" in observation:
        observation = yield _call(draw.choice(("sc_ensemble", "md_ensemble")))
    if solution_in(observation) is None:
        observation = yield _call("custom")
    code = env.task.kind == "code"
    checks: list[tuple[str, str | None]] = [("review", "revise"), *([("test", None)] * code)]
    match draw.choice(("nothing", "format", "once", "revise", "until", "until, then format")):
        case "once":
            yield _call(draw.choice(checks)[0])
        case "revise":
            yield _call("revise")
        case "until" | "until, then format" as way:
            yield from _check_and_repair(env, *draw.choice(checks))
            if "format" in way:
                yield _call("format")
        case "format":
            yield _call("format")
    yield _answer(env)


def _until(env: WorkflowEnv, generator: str) -> Play:
    """A generator, again if its first try leaves nothing."""
    observation = yield _call(generator)
    if solution_in(observation) is None and env.episode.steps_left > 2:
        yield _call("custom")


def _check_and_repair(env: WorkflowEnv, check: str, repair: str | None) -> Play:
    """Check, and repair while the check finds fault, three times at most."""
    for _ in range(3):
        if env.episode.steps_left < 4:
            return
        observation = yield _call(check)
        if "Verdict: wrong" not in observation:
            return
        if repair is not None:
            yield _call(repair)


def _is_good(observation: str) -> bool:
    """There is a solution, and no public test says that it is wrong."""
    tested = _TESTED.search(observation)
    passed = tested is None or tested[1] == tested[2]
    return solution_in(observation) is not None and passed


def _answer(env: WorkflowEnv) -> dict[str, Any]:
    """The call that ends the episode; one that takes a value gets the last solution shown."""
    if not env.tools["answer"].required:
        return _call("answer")
    shown = (solution_in(turn.observation) for turn in reversed(env.episode.turns))
    return _call("answer", value=next((each for each in shown if each is not None), "none"))


def _preset(env: WorkflowEnv) -> str:
    """The preset of the backend; of one that the table has not, nothing is known."""
    name = getattr(getattr(env.backend, "preset", None), "name", "")
    return name if any(name == preset for preset, _ in FIRST) else "teaching"


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}
