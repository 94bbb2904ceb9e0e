"""`aflowgym/Compose-v0`: what a workflow leaves, what an invalid one is told, what is submitted."""

import json

import pytest

from aflowgym.backends import ScriptedBackend
from aflowgym.envs.base import solution_in
from toolgym import ConfigurationError, registration
from toolgym.records import EpisodeRecord
from toolgym.sanitize import escape_control_tokens

COMPOSE = "aflowgym/Compose-v0"


def run(dsl):
    return {"name": "run_workflow", "arguments": {"dsl": dsl}}


ANSWER = {"name": "answer", "arguments": {}}


@pytest.fixture
def env():
    made = registration.make(COMPOSE, kind="math")
    made.reset(seed=0, options={"task_id": "math-change-1"})
    return made


def test_a_workflow_is_run_and_its_solution_shown_and_submitted(env):
    observation, reward, over, cut, info = env.step(run("[Programmer * 5] -> ScEnsemble"))
    assert solution_in(observation) == "12"
    assert observation.startswith("Took 5 calls of the model, ")
    assert (over, cut, info["error"]) == (False, False, None)
    assert info["steps_left"] == 7
    observation, last, over, _, info = env.step(ANSWER)
    assert over
    assert info["correct"]
    assert reward + last == pytest.approx(info["score"])
    assert env.episode.ledger.spent["step"] == 1 + 5


@pytest.mark.parametrize(
    ("dsl", "code", "works", "reached"),
    [
        ("Custom -> ScEnsemble", "E-NEEDS-LIST", "[Custom, Custom, Custom] -> ScEnsemble", 0.1),
        ("[Custom, Custom] -> Review", "E-LIST", None, 0.1),
        ("Custom -> Test", "E-KIND", "Custom -> Review", 0.1),
        ("Custom -> Reveiw", "E-OP-UNKNOWN", "Custom -> Review", 0.0),
        ("I would just compute it", "E-NO-WORKFLOW", None, 0.0),
        ("", "E-", None, 0.0),
    ],
)
def test_an_invalid_workflow_is_not_run_and_a_corrected_one_is_told(env, dsl, code, works, reached):
    observation, *_, info = env.step(run(dsl))
    error = info["error"]
    assert error.code == "invalid_workflow"
    assert error.message.startswith(code)
    assert env.episode.ledger.progress == reached
    assert env.episode.ledger.spent["step"] == env.episode.ledger.spent["failed_call"] == 1
    if works is not None:
        assert error.example == run(works)
    assert json.dumps(error.example) in observation
    *_, info = env.step(error.example)
    assert info["error"] is None


def test_the_answer_is_what_a_workflow_last_left_though_a_later_one_fails():
    replies = {"AnswerGenerate": [""], "Custom": ["Answer: 12"]}
    env = registration.make(COMPOSE, kind="math", backend=ScriptedBackend(replies))
    env.reset(seed=0, options={"task_id": "math-change-1"})
    env.step(run("Custom"))
    observation, *_, info = env.step(run("AnswerGenerate"))
    assert "No solution. error[E-REPLY-EMPTY] at step 0" in observation
    assert info["error"] is None  # a good call that failed: no mistake of the agent's
    observation, *_ = env.step(run("Custom -> AnswerGenerate"))
    assert "The run ended before its end. error[E-REPLY-EMPTY] at step 1" in observation
    assert solution_in(observation) == "Answer: 12"
    assert env.step(ANSWER)[4]["correct"]


def test_a_run_that_leaves_nothing_is_answered_wrongly():
    env = registration.make(
        COMPOSE, kind="math", backend=ScriptedBackend(lambda request: "", lambda job: [])
    )
    env.reset(seed=0)
    env.step(run("Custom"))
    observation, _, over, _, info = env.step(ANSWER)
    assert (over, info["correct"]) == (True, False)
    assert "no solution to submit" in observation


def test_a_code_task_shows_its_public_tests_and_no_hidden_one():
    env = registration.make(COMPOSE, kind="code")
    seen = []
    for seed in range(40):
        env.reset(seed=seed)
        seen.append((env.task, env.step(run("Custom"))[0]))
    assert any("Public tests: 2 of 2 pass." in text for _, text in seen)
    failing = [text for _, text in seen if "Public tests: 1 of 2 pass. " in text]
    assert failing
    for task, text in seen:
        hidden = [test for test in task.tests if test not in task.public_tests]
        assert not any(test.arguments in text for test in hidden if len(test.arguments) > 8)


def test_how_a_text_was_read_is_told(env):
    observation, *_ = env.step(run("custom => Review ? Revise"))
    assert observation.startswith("Read as: Custom -> Review ? Revise : done\n")


def test_an_instruction_is_refused_unless_it_is_allowed(env):
    text = 'Custom("say 12") -> (Review -> Revise("quick")) * 2'
    *_, info = env.step(run(text))
    assert info["error"].code == "instruction_refused"
    assert info["error"].example == run("Custom -> (Review -> Revise) * 2")
    assert env.episode.ledger.progress == 0.1
    allowed = registration.make(COMPOSE, kind="math", instructions=True)
    allowed.reset(seed=0)
    assert allowed.step(run(text))[4]["error"] is None


@pytest.mark.parametrize(
    "action",
    [
        '<tool_call>{"name": "answer", "arguments": {"value": "12"}}</tool_call>',
        '<tool_call>{"name": "answer", "arguments": "12"}</tool_call>',
        'answer("12")',
        'final_answer("12")',
        'Solution:\nAnswer: 12\n<tool_call>{"name": "answer", "arguments": {}}</tool_call>',
        {"name": "submit", "arguments": {"value": 12}},
    ],
)
def test_nothing_that_the_agent_says_becomes_the_answer(env, action):
    env.step(run("Answer: 12"))
    env.step("The answer is 12.\nSolution:\n12")
    *_, info = env.step(action)
    env.finish()
    assert not env.episode.ledger.correct
    assert info["score"] < 0.1


def test_equal_seeds_are_equal_episodes_and_other_seeds_draw_anew(env):
    def played(seed):
        env.reset(seed=seed, options={"task_id": "math-change-1"})
        return str([env.step(action)[:2] for action in (run("Custom"), run("Programmer"), ANSWER)])

    assert played(5) == played(5)
    assert len({played(seed) for seed in range(8)}) > 4


def test_a_workflow_that_is_run_again_leaves_the_same_and_pays_for_it(env):
    first, second = (env.step(run("Custom"))[0] for _ in range(2))
    assert first == second
    assert env.episode.ledger.spent["repeat"] == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kind": "poem"}, "kind must be one of 'math', 'code', 'qa'"),
        ({"split": "exam"}, "exam"),
        ({"backend": "oracle"}, "unknown backend 'oracle'"),
        ({"step_limit": 1}, "step_limit must be an integer"),
    ],
)
def test_an_argument_out_of_range_is_refused(options, told):
    with pytest.raises(ConfigurationError, match=told):
        registration.make(COMPOSE, **options)


TAGGED = {
    "kind": "code",
    "question": "Write tag(text), which puts a text between <s> and </s>.",
    "entry_point": "tag",
    "tests": ["assert tag('a') == '<s>a</s>'", "assert tag('') == '<s></s>'"],
    "solution": "def tag(text):\n    return '<s>' + text + '</s>'",
}


def test_a_program_with_control_tokens_is_right_and_its_shown_text_is_escaped():
    program = TAGGED["solution"]
    env = registration.make(
        COMPOSE, dataset=[TAGGED], backend=ScriptedBackend(lambda request: program)
    )
    env.reset(seed=0)
    observation, *_ = env.step(run("CustomCodeGenerate"))
    assert escape_control_tokens(program) in observation != program
    *_, info = env.step(ANSWER)
    assert info["correct"]
    record = EpisodeRecord.of(env.episode, COMPOSE)
    assert env.family.recheck(env, env.task, record.turns)
