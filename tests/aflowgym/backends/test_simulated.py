"""The simulated backend: real texts, seeded draws, common random numbers."""

import pickle
from collections import Counter
from dataclasses import replace

import pytest

from aflowgym import execute, grade, load_tasks, parse
from aflowgym.answers import judge_code
from aflowgym.backends import PRESETS, Preset, SimulatedBackend, Skills, make_backend
from aflowgym.backends.presets import PLAIN
from aflowgym.backends.simulated import failing_tests
from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.context import Job, number, shuffled, unit
from aflowgym.operators.operator import Operator
from aflowgym.operators.replies import answer_key
from aflowgym.tasks.task import WorkflowTask
from toolgym.errors import ConfigurationError, EnvironmentFault

ALL = [task for split in ("train", "dev", "test") for task in load_tasks("bundled", split)]
SOME = ALL[::5]
KINDS = ("math", "code", "qa")


def solutions(text, task, seeds, preset="teaching"):
    backend, tree = SimulatedBackend(preset), parse(text, kind=task.kind).workflow
    return [execute(tree, task, backend, seed=seed).solution for seed in range(seeds)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_bundled_task_has_answers_of_all_states_and_its_verifier_tells_them_apart(kind):
    for task in SOME:
        if task.kind == kind:
            check_states(task, SimulatedBackend())


def check_states(task, backend):
    world = backend.world(task)
    odd = [
        world.odd(number, number % 2 == 1)
        for number in (314159265358979, 271828182845904, 141421356237309)
    ]
    answers = {"R": [world.right], "M": [world.typical(True), world.typical(False)], "U": odd}
    if task.kind != "code":
        answers["W"] = [world.loose]

    for state, texts in answers.items():
        for text in texts:
            said = world.said(text)
            assert world.state(said) == state, task.id
            assert world.bare(said) == text
            assert grade(task, said, backend.sandbox).correct is (state == "R")
    keys = [answer_key(task, world.said(each)) for each in (world.right, world.modal, *odd)]
    assert len(set(keys)) == len(keys)


def test_a_wrong_program_fails_a_public_test_or_only_hidden_ones():
    for task in SOME:
        if task.kind == "code":
            check_tests(task, SimulatedBackend())


def check_tests(task, backend):
    world = backend.world(task)
    for found_out in (True, False):
        for program in (world.typical(found_out), world.odd(10**15, found_out)):
            calls = tuple((test.arguments, test.keywords) for test in task.tests)
            job = Job(task, program, task.entry_point, calls)
            outcomes = backend.sandbox.run(job)
            public = judge_code(task.public_tests, outcomes[: len(task.public_tests)])

            assert judge_code(task.tests, outcomes).correct is False
            assert public.correct is not found_out, task.id


def test_a_task_without_hidden_tests_has_no_mistake_that_only_they_would_find():
    task = next(task for task in ALL if task.kind == "code")
    public = replace(task, tests=task.public_tests)

    assert failing_tests(public, wrong=True, public=False) == task.public_tests[-1:]
    assert failing_tests(public, wrong=False, public=True) == ()


def test_equal_beginnings_of_two_workflows_have_equal_results():
    backend = SimulatedBackend("teaching")
    for task in ALL[::20]:
        for seed in range(3):
            short, long, other = (
                execute(parse(text).workflow, task, backend, seed=seed)
                for text in ("Custom", "Custom -> Review ? Revise : done", "Custom -> Format")
            )
            steps = [next(s for s in r.trace.walk() if s.label == "Custom") for r in (long, other)]

            assert [step.outputs["solution"] for step in steps] == [short.solution] * 2


def test_operators_find_the_same_tasks_hard():
    """Common random numbers: whoever is better is right wherever the other is."""
    for task in ALL[::33]:
        worse, better = solutions("Custom", task, 40), solutions("AnswerGenerate", task, 40)
        backend = SimulatedBackend()
        for one, other in zip(worse, better, strict=True):
            if grade(task, one, backend.sandbox).correct:
                assert grade(task, other, backend.sandbox).correct


def test_another_seed_task_or_place_is_another_draw():
    drawn = [
        unit(number(seed, task, path, place, label))
        for seed in (0, 1) for task in ("a", "b") for path in ("0", "0.b1") for place in (0, 1)
        for label in ("right", "modal")
    ]  # fmt: skip

    assert len(set(drawn)) == 32
    assert all(0 <= draw < 1 for draw in drawn)
    assert number(1, 23) != number(12, 3)


def test_draws_are_the_same_on_every_machine():
    assert unit(number(0, "math-change-1", "0", 0, "right")) == 0.1334813245286126
    assert shuffled(5, 0, "x") == [2, 0, 1, 4, 3]


def test_the_rounds_of_a_loop_are_draws_of_their_own():
    task = ALL[0]
    backend = SimulatedBackend(replace(PRESETS["teaching"], math=always(anchor=0.0, custom=0.5)))
    result = execute(parse("Custom * 5").workflow, task, backend, seed=2)
    said = [step.outputs["solution"] for step in result.trace.walk() if step.label == "Custom"]

    assert len(set(said)) > 1


def always(**changes):
    given = {
        "custom": 0.5,
        "answer_generate": 0.5,
        "custom_code_generate": 0.5,
        "programmer": 0.5,
    }
    return Skills(**{**given, **changes})


def test_a_generator_takes_over_what_it_finds_as_often_as_it_is_anchored():
    task = ALL[0]
    preset = Preset("p", math=always(anchor=1.0), code=always(), qa=always())
    backend = SimulatedBackend(preset)
    for seed in range(30):
        result = execute(parse("Custom -> Programmer -> Custom").workflow, task, backend, seed=seed)
        said = [s.outputs["solution"] for s in result.trace.walk() if s.outputs]

        assert len({answer_key(task, each) for each in said}) == 1


def test_an_odd_mistake_is_like_no_other():
    preset = Preset("p", *[always(custom=0.0, modal=0.0, anchor=0.0)] * 3)
    for kind in KINDS:
        task = next(task for task in ALL if task.kind == kind)
        said = [
            candidate.solution
            for seed in range(20)
            for step in execute(
                parse("[Custom * 5] -> ScEnsemble").workflow, task, SimulatedBackend(preset),
                seed=seed,
            ).trace.walk()
            if step.label == "ScEnsemble"
            for candidate in step.inputs["candidates"]
        ]  # fmt: skip

        assert max(Counter(answer_key(task, each) for each in said).values()) == 1


def test_every_operator_of_aflow_is_known_and_others_say_what_they_act_like():
    for name in OPERATORS:
        assert PRESETS["paper"].acts(name) == name
    with pytest.raises(ConfigurationError, match="say what it acts like"):
        PRESETS["paper"].acts("SecondLook")
    for like in PLAIN:
        assert replace(PRESETS["paper"], acts_like={"SecondLook": like}).acts("SecondLook") == like
    with pytest.raises(ConfigurationError, match="not like 'Test'"):
        replace(PRESETS["paper"], acts_like={"SecondLook": "Test"})


def test_an_operator_of_ones_own_draws_as_the_one_it_acts_like():
    mine = OPERATORS.copy()
    mine.register(
        Operator(
            name="SecondLook",
            summary="Judge it once more.",
            prompt="{problem} {solution}",
            needs=("solution",),
            writes=("verdict", "feedback"),
        )
    )
    preset = replace(PRESETS["teaching"], acts_like={"SecondLook": "Review"})
    tree = parse("Custom -> (SecondLook -> Revise) * 2", operators=mine).workflow
    left = [
        execute(tree, ALL[0], SimulatedBackend(preset), seed=seed, operators=mine).solution
        for seed in range(20)
    ]

    assert left == solutions("Custom -> (Review -> Revise) * 2", ALL[0], 20)
    with pytest.raises(ConfigurationError, match="acts_like"):
        execute(tree, ALL[0], SimulatedBackend(), operators=mine)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"custom": 1.2}, "custom must lie between 0 and 1, got 1.2"),
        ({"keep": -0.1}, "keep must lie"),
        ({"weight": -1.0}, "weight must lie"),
    ],
)
def test_a_skill_out_of_range_is_refused(changes, said):
    with pytest.raises(ConfigurationError, match=said):
        always(**changes)


def test_a_program_has_no_loose_form():
    with pytest.raises(ConfigurationError, match="loose must be 0 for code"):
        Preset("p", math=always(), code=always(loose=0.1), qa=always())


def test_a_task_whose_gold_no_verifier_reads_is_a_fault_and_not_a_wrong_answer():
    task = WorkflowTask("odd", "What is it?", kind="math", gold="")
    with pytest.raises(EnvironmentFault, match="verifier refuses the gold"):
        execute(parse("Custom").workflow, task, SimulatedBackend())


def test_tasks_without_solution_and_distractors_can_be_simulated():
    code = replace(next(t for t in ALL if t.kind == "code"), solution="", distractors=())
    bare = [replace(t, distractors=()) for t in ALL[:3]]
    bare.append(WorkflowTask("zero", "What is 1 - 1?", kind="math", gold="0"))
    for task in [code, *bare]:
        backend = SimulatedBackend()
        world = backend.world(task)

        assert grade(task, world.said(world.right), backend.sandbox).correct
        assert not grade(task, world.said(world.modal), backend.sandbox).correct


def test_the_simulated_sandbox_runs_no_stranger_s_program():
    sandbox = SimulatedBackend().sandbox
    with pytest.raises(ConfigurationError, match="pass a real one as sandbox="):
        sandbox.run(Job(ALL[0], "def solve():\n    import os\n    return os.getcwd()\n", "solve"))


def test_presets_survive_a_pickle_and_serve_as_keys():
    for preset in PRESETS.values():
        again = pickle.loads(pickle.dumps(preset))

        assert again == preset
        assert hash(again) == hash(preset)


def test_a_backend_is_found_by_name_and_a_missing_one_says_what_to_do():
    assert make_backend("simulated").preset.name == "teaching"
    assert make_backend("simulated:paper").preset.name == "paper"
    mine = SimulatedBackend()
    assert make_backend(mine) is mine
    for name in ("openai", "transformers"):
        with pytest.raises(ConfigurationError, match="name the model"):
            make_backend(name)
    with pytest.raises(ConfigurationError, match="there are simulated, simulated:PRESET, replay"):
        make_backend("magic")
    with pytest.raises(ConfigurationError, match="there are paper, teaching"):
        make_backend("simulated:magic")
