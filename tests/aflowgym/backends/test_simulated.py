"""The simulated backend: real texts, seeded draws."""

from collections import Counter
from dataclasses import replace

import pytest

from aflowgym import execute, grade, load_tasks, parse
from aflowgym.backends import Preset, SimulatedBackend, Skills, make_backend
from aflowgym.operators import OPERATORS, Operator
from aflowgym.operators.context import Job
from aflowgym.operators.replies import answer_key
from aflowgym.tasks.task import WorkflowTask
from toolgym.errors import ConfigurationError, EnvironmentFault

ALL = [task for split in ("train", "dev", "test") for task in load_tasks("bundled", split)]
SOME = ALL[::5]
KINDS = ("math", "code", "qa")


def always(**changes):
    given = dict.fromkeys(("custom", "answer_generate", "custom_code_generate", "programmer"), 0.5)
    return Skills(**{**given, **changes})


def solutions(text, task, seeds, backend=None, operators=None):
    backend = backend or SimulatedBackend()
    tree = parse(text, kind=task.kind, operators=OPERATORS.of(operators)).workflow
    return [
        execute(tree, task, backend, seed=seed, operators=operators).solution
        for seed in range(seeds)
    ]


def test_a_verifier_tells_right_answers_from_loose_and_wrong_ones_which_all_differ():
    backend = SimulatedBackend()
    for task in SOME:
        world = backend.world(task)
        answers = {"right": [world.right], "wrong": world.mistakes}
        answers["loose"] = [] if task.kind == "code" else [world.loose]
        for state, texts in answers.items():
            for said in map(world.said, texts):
                assert world.read(said)[1] == state, (task.id, said)
                assert grade(task, said, backend.sandbox).correct is (state == "right")
        texts = [world.right, *world.mistakes]
        assert len({answer_key(task, world.said(each)) for each in texts}) == len(texts) > 1


def test_a_wrong_program_fails_a_public_test_or_only_hidden_ones():
    backend = SimulatedBackend()
    for task in (each for each in SOME if each.kind == "code"):
        calls = tuple((test.arguments, test.keywords) for test in task.public_tests)
        expected = [test.expected for test in task.public_tests]
        for revealed in (True, False):
            for program in backend.world(task).mistakes_that(revealed):
                found = backend.sandbox.run(Job(task, program, task.entry_point, calls, ""))
                assert ([each.value for each in found] != expected) is revealed


def test_the_branches_of_a_list_draw_for_themselves_and_make_different_mistakes():
    preset = Preset("p", *[always(custom=0.0, modal=0.0)] * 3)
    for task in (next(task for task in ALL if task.kind == kind) for kind in ("math", "code")):
        tree = parse("[Custom * 5] -> ScEnsemble", kind=task.kind).workflow
        for seed in range(20):
            trace = execute(tree, task, SimulatedBackend(preset), seed=seed).trace
            (step,) = (each for each in trace.walk() if each.label == "ScEnsemble")
            keys = Counter(answer_key(task, each.solution) for each in step.inputs["candidates"])
            assert max(keys.values()) == 1 or task.kind == "code"
            assert len(keys) > 2


def test_a_draw_depends_on_seed_task_operator_and_branch_and_on_no_place():
    task = ALL[0]
    assert len(set(solutions("Custom", task, 20))) > 2
    assert solutions("Custom -> Custom -> Custom", task, 20) == solutions("Custom", task, 20)
    assert solutions("Custom", task, 20) != solutions("Custom", ALL[1], 20)
    assert solutions("Custom", task, 1) == ["I calculate step by step.\nAnswer: 12"]


OWN = [
    Operator("Judge", "Judge it.", "{solution}", ("solution",), outputs=("verdict", "feedback")),
    Operator("Mend", "Mend it.", "{solution} {feedback}", ("solution",), ("feedback",)),
    Operator("Trim", "Shorten it.", "{solution}", ("solution",)),
    Operator("Choose", "Choose one.", "{candidates}", ("candidates",)),
    Operator("Write", "Write a program.", "{problem}", outputs=("solution", "code")),
    Operator("Guess", "Guess it.", "{problem}"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_operator_of_your_own_acts_by_its_inputs_and_outputs(kind):
    task = next(task for task in ALL if task.kind == kind)
    operators = [*OPERATORS.values(), *OWN]
    for text in (
        "Guess -> Judge ? Mend : done", "Guess -> Trim", "[Guess * 3] -> Choose", "Write -> Trim",
    ):  # fmt: skip
        backend = SimulatedBackend()
        left = [each for each in solutions(text, task, 60, backend, operators) if each]
        right = sum(bool(grade(task, each, backend.sandbox).correct) for each in left)
        assert len(left) > 50, text
        assert 0 < right < len(left) or (kind != "code" and "Write" in text), text


@pytest.mark.parametrize("changes", [{"custom": 1.2}, {"keep": -0.1}, {"weight": -1.0}])
def test_a_skill_out_of_range_is_refused(changes):
    with pytest.raises(ConfigurationError, match=f"{next(iter(changes))} must be between"):
        always(**changes)


def test_a_task_whose_gold_no_verifier_reads_is_a_fault_and_not_a_wrong_answer():
    task = WorkflowTask("odd", "What is it?", kind="math", gold="")
    with pytest.raises(EnvironmentFault, match="verifier refuses the gold"):
        execute(parse("Custom").workflow, task, SimulatedBackend())


def test_tasks_without_solution_and_distractors_can_be_simulated():
    bare = [replace(t, solution="", distractors=(), context=()) for t in SOME[::20]]
    bare += [WorkflowTask(gold, "Is it?", kind="qa", gold=gold) for gold in ("yes", "the Glim")]
    bare.append(WorkflowTask("m", "What is 1 - 1?", kind="math", gold="0"))
    assert {task.kind for task in bare} == set(KINDS)
    for task in bare:
        backend = SimulatedBackend()
        world = backend.world(task)
        assert grade(task, world.said(world.right), backend.sandbox).correct
        assert not grade(task, world.said(world.mistakes[0]), backend.sandbox).correct
        assert len(solutions("Custom -> Review -> Revise", task, 20, backend)) == 20


def test_a_program_of_another_author_is_a_fault_that_says_what_to_do():
    sandbox = SimulatedBackend().sandbox
    with pytest.raises(EnvironmentFault, match="Pass a real sandbox"):
        sandbox.run(Job(ALL[0], "def solve():\n    import os\n    return os.getcwd()\n", "solve"))


def test_a_backend_is_found_by_name_and_a_missing_one_says_what_to_do():
    assert make_backend("simulated").preset.name == "teaching"
    assert make_backend("simulated:paper").preset.name == "paper"
    for name, message in (
        ("openai", "name the model"),
        ("transformers", "is not a model folder"),
        ("magic", "use simulated, simulated:PRESET, replay"),
        ("simulated:magic", "there are paper, teaching"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            make_backend(name)
