"""The waiting and the concurrent face: the same steps, the same draws, the same trace."""

import asyncio
import os
import subprocess
import sys

import pytest

from aflowgym import aexecute, execute, load_tasks, parse
from aflowgym.backends import SimulatedBackend
from aflowgym.execution.protocols import Completion
from tests.sweeps import sweep
from toolgym.errors import EnvironmentFault

TRAIN = load_tasks("bundled", "train")
MATH = next(task for task in TRAIN if task.kind == "math")
TEXTS = [
    "Custom -> Programmer -> Review ? Revise : done",
    "[Custom * 3, Programmer, AnswerGenerate -> Review -> Revise] -> ScEnsemble -> Format",
    "[[Custom, Programmer] -> MdEnsemble, Custom -> (Review -> Revise) * 3] -> ScEnsemble",
    "([Custom, Custom] -> ScEnsemble -> Review) * 3 -> [Revise, Format, Programmer] -> MdEnsemble",
    "CustomCodeGenerate -> Test ? [Revise, Programmer] -> ScEnsemble : Format",
    "([Programmer, Programmer] -> ScEnsemble -> Test ? (Revise -> Programmer) : done) * 2",
]


@pytest.mark.parametrize("text", sweep(TEXTS, [TEXTS[1], TEXTS[4]]))
def test_both_faces_leave_the_same_trace(text):
    backend, tree = SimulatedBackend("teaching"), None
    for seed, task in enumerate(TRAIN[::8]):
        tree = parse(text, kind=task.kind).workflow
        if tree is not None:
            one = execute(tree, task, backend, seed=seed)
            other = asyncio.run(aexecute(tree, task, SimulatedBackend("teaching"), seed=seed))

            assert one == other
            assert str(one.trace) == str(other.trace)


class Late(SimulatedBackend):
    """Answers in an order of its own: what was asked first comes last."""

    def __init__(self):
        super().__init__("teaching")
        self.asked = 0

    async def agenerate(self, request):
        self.asked += 1
        for _ in range(100 // self.asked):
            await asyncio.sleep(0)
        return self.generate(request)


@pytest.mark.nightly
def test_the_trace_does_not_depend_on_which_branch_is_first():
    tree = parse(TEXTS[2]).workflow
    for seed in range(30):
        late = asyncio.run(aexecute(tree, MATH, Late(), seed=seed))

        assert late == execute(tree, MATH, SimulatedBackend("teaching"), seed=seed)


class Meeting:
    """Answers only once so many ask at the same time."""

    sandbox = None

    def __init__(self, parties):
        self.barrier = asyncio.Barrier(parties)

    async def agenerate(self, request):
        await self.barrier.wait()
        return Completion("Answer: 12" if request.operator == "Custom" else "A")


def test_branches_and_votes_are_asked_at_the_same_time():
    async def run():
        return await aexecute(parse("[Custom * 5] -> MdEnsemble").workflow, MATH, Meeting(5))

    result = asyncio.run(asyncio.wait_for(run(), 120))
    assert result.solution == "Answer: 12"


class HalfDown:
    """One branch has an outage, the other would wait for ever."""

    sandbox = None

    def __init__(self):
        self.cancelled = False

    async def agenerate(self, request):
        if request.path.endswith("b0"):
            raise EnvironmentFault("the server does not answer.")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


def test_a_fault_in_one_branch_cancels_the_others_and_passes_through():
    backend = HalfDown()
    tree = parse("[Custom, Custom] -> ScEnsemble").workflow

    with pytest.raises(EnvironmentFault, match="does not answer"):
        asyncio.run(asyncio.wait_for(aexecute(tree, MATH, backend), 120))
    assert backend.cancelled


@pytest.mark.nightly
def test_runs_on_one_backend_do_not_meet():
    backend = Late()
    tree = parse(TEXTS[1]).workflow

    async def all_of_them():
        runs = [aexecute(tree, task, backend, seed=1) for task in TRAIN[:20]]
        return await asyncio.gather(*runs)

    alone = [execute(tree, task, SimulatedBackend("teaching"), seed=1) for task in TRAIN[:20]]
    assert asyncio.run(all_of_them()) == alone


SCRIPT = f"""
from aflowgym import execute, load_tasks, parse
from aflowgym.backends import SimulatedBackend
backend = SimulatedBackend("teaching")
for task in load_tasks("bundled", "train")[::40]:
    for text in {TEXTS!r}:
        tree = parse(text, kind=task.kind).workflow
        if tree is not None:
            print(execute(tree, task, backend, seed=7).trace)
"""


@pytest.mark.integration
def test_two_processes_draw_the_same_whatever_their_hash_seed():
    printed = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            timeout=600,
        ).stdout
        for hash_seed in ("0", "1")
    ]

    assert printed[0] == printed[1]
    assert len(printed[0]) > 1000
