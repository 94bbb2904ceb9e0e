"""The runs and steps of one interpreter: one account, one state."""

from aflowgym import Budget, execute, load_tasks, parse
from aflowgym.backends import ScriptedBackend, SimulatedBackend
from aflowgym.dsl.nodes import ListOf, Op
from aflowgym.execution.interpreter import Interpreter

TASKS = load_tasks("bundled", "train")
MATH = next(task for task in TASKS if task.kind == "math")


def test_the_runs_of_an_episode_share_its_calls():
    episode = Interpreter(MATH, SimulatedBackend(), budget=Budget(calls=7))
    workflow = parse("Custom -> Custom -> Custom").workflow
    results = [episode.run(workflow) for _ in range(4)]

    assert sum(result.usage.calls for result in results) == 7
    assert [result.ok for result in results] == [True, True, True, False]
    assert [str(result.failure)[:14] for result in results[2:]] == ["error[E-CALLS]"] * 2


def test_every_run_starts_from_an_empty_state_and_draws_the_same():
    episode = Interpreter(MATH, SimulatedBackend(), seed=3)
    workflow = parse("Custom -> Review -> Revise").workflow

    first = episode.run(workflow)
    assert episode.run(workflow) == first == execute(workflow, MATH, SimulatedBackend(), seed=3)


def test_steps_leave_what_the_workflow_leaves():
    workflow = parse("Custom -> [Revise * 3] -> ScEnsemble -> Review").workflow
    for seed in range(20):
        episode = Interpreter(MATH, SimulatedBackend(), seed=seed)
        for node in workflow.steps:
            result = episode.step(node)
        whole = execute(workflow, MATH, SimulatedBackend(), seed=seed)

        assert (result.solution, result.verdict) == (whole.solution, whole.verdict)


def test_a_step_that_fails_leaves_the_state():
    backend = ScriptedBackend({"Custom": ["Answer: 1"], "Review": ["?"], "Revise": [""]})
    episode = Interpreter(MATH, backend)
    episode.step(Op("Custom"))
    for node in (Op("Review"), ListOf((Op("Revise"),) * 2), Op("ScEnsemble")):
        result = episode.step(node)

        assert (result.solution, result.ok, result.failure is None) == ("Answer: 1", True, False)
        assert episode.context.candidates is None


def test_candidates_are_no_solution():
    episode = Interpreter(MATH, SimulatedBackend())
    result = episode.step(ListOf((Op("Custom"),) * 3))

    assert (result.solution, result.failure, len(episode.context.candidates)) == (None, None, 3)
