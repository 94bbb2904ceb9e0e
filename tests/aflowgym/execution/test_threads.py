"""Requests that do not depend on each other are open at once, and change nothing of a result."""

import threading
from collections import Counter

import pytest

from aflowgym import Budget, execute, load_tasks, parse
from aflowgym.backends import SimulatedBackend
from aflowgym.operators.context import Completion
from toolgym.errors import EnvironmentFault

TASKS = load_tasks("bundled", "train")
MATH = next(task for task in TASKS if task.kind == "math")


class Meeting:
    """A backend that answers one operator only when a given number of its requests are open."""

    waits, sandbox = True, None

    def __init__(self, **parties):
        self.barriers = {name: threading.Barrier(count) for name, count in parties.items()}

    def generate(self, request):
        name = request.operator.name
        if name in self.barriers:
            self.barriers[name].wait(10)
        return Completion("A" if "Ensemble" in name else f"Answer: {request.branch}", 10, 10)


@pytest.mark.parametrize(
    ("text", "parties"),
    [
        ("[Custom * 5] -> ScEnsemble", {"Custom": 5}),
        ("[Custom * 2] -> MdEnsemble", {"Custom": 2, "MdEnsemble": 5}),
        ("[[Custom * 3] -> ScEnsemble, [Custom * 2] -> ScEnsemble] -> ScEnsemble", {"Custom": 5}),
    ],
)
def test_branches_and_votes_are_asked_at_the_same_time(text, parties):
    result = execute(parse(text).workflow, MATH, Meeting(**parties))

    assert result.ok, result.failure


class Threaded(SimulatedBackend):
    """The simulated operators as if they were on a server."""

    waits = True


@pytest.mark.parametrize("calls", [32, 9])
def test_threads_change_nothing_of_a_result(calls):
    inner = "[Custom, Programmer] -> MdEnsemble, Custom -> (Review -> Revise) * 3"
    text = f"[{inner}, Programmer] -> MdEnsemble"
    together, alone = Threaded(), SimulatedBackend()
    ended = Counter()
    for seed in range(30):
        task = TASKS[seed * 7 % len(TASKS)]
        workflow = parse(text, kind=task.kind).workflow
        results = [
            execute(workflow, task, backend, seed=seed, budget=Budget(calls=calls))
            for backend in (together, alone)
        ]
        ended[results[0].ok] += 1

        assert results[0] == results[1]
    assert calls == 32 or ended[False]


class Faulty:
    """A backend that is down for one branch, after the others have been asked."""

    waits, sandbox = True, None

    def __init__(self):
        self.barrier, self.open = threading.Barrier(3), 0

    def generate(self, request):
        self.open += 1
        self.barrier.wait(10)
        try:
            if request.branch == "1":
                raise EnvironmentFault("the server is down")
            return Completion("Answer: 1", 10, 10)
        finally:
            self.open -= 1


def test_a_fault_in_one_branch_ends_the_run_after_the_others():
    backend = Faulty()
    with pytest.raises(EnvironmentFault, match="is down"):
        execute(parse("[Custom * 3] -> ScEnsemble").workflow, MATH, backend)

    assert backend.open == 0
