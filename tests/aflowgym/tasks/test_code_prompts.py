"""Examples and code before the function, in the forms that prompts of code problems have."""

import pytest

from aflowgym import execute, load_tasks, parse
from aflowgym.answers import CodeTest, Outcome, read_tests
from aflowgym.backends import SimulatedBackend
from aflowgym.execution.interpreter import grade, job_of
from aflowgym.sandbox.unsafe import UnsafeSandbox
from aflowgym.tasks.code_prompts import examples, setup

HEAD = "from typing import List\n\ndef span(xs, k):\n    '''The span.\n"
FORMS = [
    ">>> span([1, 5], 2)\n    4",
    ">>> span([1, 5], 2)  # five less one\n    4",
    ">>> span([1, 5], 2) == 4\n    True",
    ">>> span([1, 5], 2) 4",
    "Example: span([1, 5], 2) == 4",
    "span([1, 5], 2) = 4",
    "* span([1, 5], 2) => 4",
    "span([1, 5], 2) ==>4",
    "span([1, 5], 2) -> 4 (the largest less the smallest)",
    "span([1, 5], 2) ➞ 4",
    "span([1, 5], 2) ->5 - 1 = 4",
    "span([1, 5], 2) returns 4",
    "span([1, 5], 2) should return 4.",
    "span([1, 5], 2)   # returns 4",
    "span([1, 5], 2) # => 4 (as 5 - 1)",
    "for span([1, 5], 2) == 4",
    "span([\n      1,\n      5\n    ], 2) == 4",
    "range_of([1, 5], 2) ==> 4",
    "assert range_of([1, 5], 2) => 4",
]
NOT_EXAMPLES = [
    "span(xs, 2) == 4",
    "span([1, 5], 2) should not return 4",
    "span([1, 5], 2) is small",
    "span([1, 5], 2) == 4 * k",
    'span([1, 5], 2) == ""four"',
    "span([1, 5, 2) == 4",
    "For xs = [1, 5] the output should be 4",
    "max(1, 5) == 5",
]
HIDDEN = read_tests("assert span([1, 5], 2) == 4\nassert span([3], 1) == 0", "span")


def test_an_example_is_read_in_each_form_that_prompts_have():
    for form in FORMS:
        prompt = f"{HEAD}\n    {form}\n    '''\n"

        assert examples(prompt, "span", ()) == (CodeTest("span", "([1, 5], 2)", "4"),), form


def test_what_is_no_call_over_literals_with_its_value_is_no_example():
    for text in NOT_EXAMPLES:
        assert examples(f"{HEAD}\n    {text}\n    '''\n", "span", ()) == (), text


@pytest.mark.parametrize(
    "slip", ["span([1, 5], 2) == 5", "span([1, 5]) == 4", "span([1, 9], 2) == [1, 9]"]
)
def test_an_example_that_the_hidden_tests_contradict_is_left_out(slip):
    prompt = f"{HEAD}    {slip}\n    span([2, 3], 2) == 1\n    span([], 0) == None\n    '''\n"

    found = [each.expected for each in examples(prompt, "span", HIDDEN)]
    assert found == ["1", "None"]


def test_an_example_is_as_lenient_as_the_hidden_tests():
    near = read_tests("assert abs(mean([1.0, 2.0]) - 1.5) < 1e-6", "mean")
    (found,) = examples("def mean(xs):\n    '''mean([0.1, 0.2]) == 0.15'''\n", "mean", near)

    assert (found.form, found.tolerance) == ("abs <", 1e-6)


def test_what_stands_before_the_function_is_its_setup():
    prompt = (
        "import math\n\nHALF = 0.5\n\ndef near(x):\n    return x\n\n\ndef f(x):\n    '''F.'''\n"
    )

    assert setup(prompt, "f") == prompt[: prompt.index("\n\n\ndef f")]
    assert setup("def f(x):\n    '''F.'''\n", "f") == ""
    assert setup("this is no Python", "f") == ""


ROW = {
    "task_id": "own/1",
    "prompt": "from typing import List\n\ndef twice(x):\n    return 2 * x\n\n\n"
    "def total(xs: List[int]) -> int:\n    '''Twice the sum: total([1, 2]) -> 6'''\n",
    "canonical_solution": "    return twice(sum(xs))\n",
    "entry_point": "total",
    "test": "def check(candidate):\n    assert candidate([3]) == 6\n",
}
PROGRAM = "def total(xs: List[int]) -> int:\n    return twice(sum(xs))\n"


def test_a_program_runs_with_the_imports_and_functions_of_its_prompt():
    (task,) = load_tasks([ROW], "train")
    assert task.public_tests == (CodeTest("total", "([1, 2],)", "6"),)
    sandbox = UnsafeSandbox()

    assert grade(task, f"```python\n{PROGRAM}```", sandbox).correct is True
    future = f"from __future__ import annotations\n{PROGRAM}"
    assert list(sandbox.run(job_of(task, future, task.tests))) == [Outcome("6")]
    own = "def total(xs):\n    return twice(xs[0])\n\ndef twice(x):\n    return x / 0\n"
    (outcome,) = sandbox.run(job_of(task, own, task.tests))
    assert outcome.error == "ZeroDivisionError: division by zero (line 5)"


def test_a_public_test_that_is_no_hidden_one_runs_in_the_simulated_sandbox_too():
    (task,) = load_tasks([ROW], "train")
    tree = parse("CustomCodeGenerate -> Test", kind="code").workflow

    verdicts = {execute(tree, task, SimulatedBackend(), seed=seed).verdict for seed in range(40)}
    assert verdicts == {True, False}
