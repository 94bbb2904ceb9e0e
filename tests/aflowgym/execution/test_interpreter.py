"""How a workflow runs: what each operator sees, and what it leaves."""

import re

import pytest

from aflowgym import execute, load_tasks, parse
from aflowgym.answers import Outcome
from aflowgym.backends import ScriptedBackend
from aflowgym.operators import OPERATORS
from toolgym.errors import ConfigurationError

TRAIN = load_tasks("bundled", "train")
MATH = next(task for task in TRAIN if task.kind == "math")
CODE = next(task for task in TRAIN if task.kind == "code")
RIGHT, WRONG = "Verdict: right\nfine", "Verdict: wrong\nthe sum is off"
PROGRAM = f"```python\n{CODE.solution}```"
MISTAKE = f"```python\n{CODE.distractors[0]}```"
ROWS = {
    "Custom": ["Answer: 1", "Answer: 2", "Answer: 3"],
    "AnswerGenerate": ["Answer: 12"],
    "CustomCodeGenerate": [PROGRAM],
    "Programmer": ["```python\ndef solve():\n    return 12\n```"],
    "Format": ["12"],
    "Review": [RIGHT],
    "Revise": ["Answer: 13"],
    "Test": [PROGRAM],
    "ScEnsemble": ["B"],
    "MdEnsemble": ["A"],
}


def ran(text, task=MATH, outcomes=None, **replies):
    """The result of a workflow, and the backend that saw its requests."""
    backend = ScriptedBackend({**ROWS, **replies}, outcomes or (lambda job: [Outcome("12")]))
    tree = parse(text, kind=task.kind).workflow
    return execute(tree, task, backend), backend


def outcomes_of(job):
    """Outcomes of a `code` task: the solution passes, anything else fails everything."""
    known = {(test.arguments, test.keywords): test.expected for test in CODE.tests}
    right = job.program == CODE.solution
    return [Outcome(known[call] if right else "'no'") for call in job.calls]


def operators_of(result):
    return [s.label for s in result.trace.walk() if s.label.split("(")[0] in OPERATORS]


def test_every_prompt_shows_the_problem_and_the_work_before_it():
    result, backend = ran("Custom -> AnswerGenerate -> Review -> Revise -> Format")
    prompts = {request.operator.name: request.prompt for request in backend.requests}

    assert all(MATH.question in prompt for prompt in prompts.values())
    assert "Answer: 1" in prompts["AnswerGenerate"]
    assert "Answer: 12" in prompts["Review"]
    assert "Answer: 12" in prompts["Revise"]
    assert "fine" in prompts["Revise"]
    assert "Answer: 13" in prompts["Format"]
    assert result.solution == "12"


def test_a_condition_runs_the_side_that_its_check_says():
    for sides, passed, failed in [
        ("Revise : Format", ["Format"], ["Revise"]),
        ("Revise : done", [], ["Revise"]),
        ("done : Revise", [], ["Revise"]),
    ]:
        for review, side in ((RIGHT, passed), (WRONG, failed)):
            result, _ = ran(f"Custom -> Review ? {sides}", Review=[review])

            assert operators_of(result) == ["Custom", "Review", *side], (review, sides)


def test_a_loop_ends_when_its_check_passes_and_skips_the_rest_of_the_round():
    loop, _ = ran("Custom -> (Review -> Revise) * 3", Review=[WRONG, RIGHT])
    condition, _ = ran("Custom -> (Review ? Revise : Format) * 3", Review=[WRONG, RIGHT])

    assert operators_of(loop) == ["Custom", "Review", "Revise", "Review"]
    assert operators_of(condition) == ["Custom", "Review", "Revise", "Review", "Format"]


def test_a_check_that_passes_ends_every_loop_around_it_but_not_that_of_another_branch():
    inner, _ = ran("Custom -> ((Review -> Revise) * 2 -> Format) * 2")
    branch, _ = ran("Custom -> ([Review, Custom] -> ScEnsemble) * 2", Custom=["Answer: 1"])

    assert operators_of(inner) == ["Custom", "Review"]
    assert operators_of(branch) == ["Custom", *["Review", "Custom", "ScEnsemble"] * 2]


def test_branches_start_from_the_same_state_and_do_not_see_each_other():
    result, backend = ran("AnswerGenerate -> [Custom -> Review, Custom, Format] -> ScEnsemble")
    second = [request for request in backend.requests if request.operator.name == "Custom"][1]

    assert "Answer: 12" in second.prompt
    assert "Answer: 1\n" not in second.prompt
    assert [s.path for s in result.trace.walk() if s.label == "Custom"] == ["1.b0.0", "1.b1"]


def test_a_vote_is_counted_by_the_value_of_the_answers_and_needs_no_model():
    answers = ["Answer: 1/2", "Answer: 3", "So we get \\boxed{0.5}."]
    result, backend = ran("[Custom * 3] -> ScEnsemble", Custom=answers)

    assert result.solution == answers[0]
    assert [request.operator.name for request in backend.requests] == ["Custom"] * 3


def test_a_tie_is_decided_by_the_model_among_the_leading_answers():
    answers = ["Answer: 1", "Answer: 2", "Answer: 1", "Answer: 2", "Answer: 3"]
    result, backend = ran("[Custom * 5] -> ScEnsemble", Custom=answers, ScEnsemble=["(B)"])

    assert result.solution == "Answer: 2"
    assert "Answer: 3" not in backend.requests[-1].prompt
    assert result.usage.calls == 6


def test_the_votes_of_md_ensemble_are_each_over_another_order():
    answers = ["Answer: 1", "Answer: 2", "Answer: 3"]

    def reply(request):
        if request.operator.name == "Custom":
            return answers[int(request.branch)]
        best = [each.solution for each in request.inputs["candidates"]].index("Answer: 3")
        return "ABC"[best]

    backend = ScriptedBackend(reply)
    result = execute(parse("[Custom * 3] -> MdEnsemble").workflow, MATH, backend)
    orders = {r.inputs["candidates"] for r in backend.requests if r.operator.name == "MdEnsemble"}

    assert (result.solution, result.usage.calls) == ("Answer: 3", 8)
    assert len(orders) > 1


def test_a_program_that_fails_is_written_anew_and_is_told_why():
    outcomes = iter([Outcome(error="ZeroDivisionError"), Outcome("'Lake Raven'")])
    result, backend = ran("Programmer", outcomes=lambda job: [next(outcomes)])

    assert (result.solution, result.usage.calls) == ("Lake Raven", 2)
    assert "ZeroDivisionError" in backend.requests[1].prompt


def test_a_test_runs_only_public_tests_and_costs_no_call_if_they_pass():
    seen = []
    result, backend = ran(
        "CustomCodeGenerate -> Test",
        CODE,
        lambda job: seen.extend(job.calls) or outcomes_of(job),
    )

    assert result.verdict is True
    assert [request.operator.name for request in backend.requests] == ["CustomCodeGenerate"]
    assert seen == [(test.arguments, test.keywords) for test in CODE.public_tests]


def test_a_program_that_fails_its_public_tests_is_repaired_and_no_hidden_test_is_shown():
    replies = {"CustomCodeGenerate": [MISTAKE], "Test": ["I cannot.", PROGRAM]}
    result, backend = ran("CustomCodeGenerate -> Test", CODE, outcomes_of, **replies)
    prompts = [request.prompt for request in backend.requests]
    hidden = [test for test in CODE.tests if test not in CODE.public_tests]

    assert (result.verdict, result.code, result.usage.calls) == (True, CODE.solution, 3)
    assert "returned 'no', expected" in prompts[1]
    assert hidden
    assert not [test for test in hidden if f"{test.function}{test.arguments} " in str(prompts)]


def test_a_new_solution_empties_the_report_on_the_old_one():
    result, backend = ran("Custom -> Review -> AnswerGenerate -> AnswerGenerate -> Programmer")

    assert "fine" in backend.requests[2].prompt
    assert "fine" not in backend.requests[3].prompt
    assert result.verdict is None


@pytest.mark.parametrize("steps", ["Revise", "Format", "[Custom, Revise] -> MdEnsemble"])
def test_a_program_that_is_kept_is_that_of_the_new_solution(steps):
    replies = {"Revise": [MISTAKE], "Format": [CODE.distractors[0]], "Custom": [MISTAKE]}
    result, backend = ran(f"CustomCodeGenerate -> {steps} -> Review", CODE, outcomes_of, **replies)

    assert result.code == CODE.distractors[0]
    assert backend.requests[-1].operator.name == "Review"


def test_an_instruction_is_in_the_prompt_of_its_operator():
    _, backend = ran('Custom("count twice") -> AnswerGenerate')

    assert "count twice" in backend.requests[0].prompt
    assert "count twice" not in backend.requests[1].prompt


def test_the_trace_is_printed_as_a_tree():
    result, _ = ran("Custom -> [Custom, Review] -> ScEnsemble -> Review ? Revise : done")

    printed = re.sub(r", \d+ tokens", "", str(result.trace))
    assert printed.splitlines() == [
        "workflow  (5 calls)",
        "├─ Custom  solution='Answer: 1'  (1 call)",
        "├─ list  (2 calls)",
        "│  ├─ branch 1  (1 call)",
        "│  │  └─ Custom  solution='Answer: 2'  (1 call)",
        "│  └─ branch 2  (1 call)",
        "│     └─ Review  verdict=True  feedback='fine'  (1 call)",
        "├─ ScEnsemble  solution='Answer: 1'  (1 call)",
        "└─ condition  (1 call)",
        "   ├─ Review  verdict=True  feedback='fine'  (1 call)",
        "   └─ it passes",
    ]


def test_what_cannot_run_says_why():
    for text, reason in (
        ("Customer -> Review", "expected a workflow to run"),
        ("Programmer", "there is no sandbox to run programs. Pass one as sandbox="),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            execute(parse(text).workflow, MATH, ScriptedBackend(ROWS))
