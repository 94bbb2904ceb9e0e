"""A message that is a workflow: in one-shot mode the whole episode, else a call with a repair."""

import pytest

from adapters.training.models.demonstrations import demonstrate
from aflowgym.backends import ScriptedBackend
from aflowgym.envs.base import solution_in
from toolgym import registration
from toolgym.messages import episode_messages, system_prompt

COMPOSE = "aflowgym/Compose-v0"
DSL = "Custom -> Programmer -> Review ? Revise : done"
PROSE = f"It has to be computed. The workflow:\n\n```\n{DSL}\n```"
FORMS = [
    DSL,
    f"```\n{DSL}\n```",
    f"```dsl\n{DSL}\n```\n",
    f"<workflow>{DSL}</workflow>",
    f"DSL: {DSL}",
    f"<think>I try Custom first.</think>\n\n{DSL}",
]


WRONG = ScriptedBackend(lambda request: "Answer: none", lambda job: [])


def run(dsl):
    return {"name": "run_workflow", "arguments": {"dsl": dsl}}


def made(**options):
    env = registration.make(COMPOSE, kind="math", **options)
    env.reset(seed=0)
    return env


@pytest.mark.parametrize("parsing", ["lenient", "strict"])
@pytest.mark.parametrize("form", [*FORMS, PROSE])
def test_in_one_shot_mode_the_message_is_the_workflow_and_the_episode(form, parsing):
    several = made()
    shown, *_ = several.step(run(DSL))
    several.step({"name": "answer"})
    env = made(one_shot=True, parsing=parsing)
    observation, reward, terminated, truncated, info = env.step(form)
    assert (terminated, truncated, info["error"], info["repairs"]) == (True, False, None, ())
    assert solution_in(observation) == solution_in(shown)
    assert info["correct"] == several.outcome.correct
    assert env.episode.ledger.progress == several.episode.ledger.progress
    assert reward == info["score"] > several.finish()  # the call costs no step


def test_one_shot_scores_have_the_order_of_progress():
    scores = []
    for text in ("### Step 1: Analyze the problem", "Custom -> ScEnsemble", "Custom -> Revise"):
        env = made(one_shot=True, backend=WRONG)
        _, score, *_, info = env.step(text)
        assert env.episode.over
        assert not info["correct"]
        scores.append((env.episode.ledger.progress, score))
    assert [progress for progress, _ in scores][:2] == [0, 0.1]
    assert scores[2][0] >= 0.5
    assert scores == sorted(scores)


def test_an_invalid_workflow_is_answered_with_its_error_and_a_bare_workflow():
    for text, code in (("Custom -> Reveiw", "E-OP-UNKNOWN"), ("Custom -> Test", "E-KIND")):
        observation, *_ = made(one_shot=True).step(text)
        assert f"error[invalid_workflow]: {code} at 10" in observation
        assert "This works: Custom -> Review" in observation


def test_the_prompt_of_one_shot_mode_has_the_language_and_no_tools():
    env = made(one_shot=True)
    assert env.tool_schemas() == []
    system, user = episode_messages(env)
    assert system["content"] == system_prompt(env, in_words=True)
    assert "tool" not in system["content"]
    assert "Your whole message is a workflow" in system["content"]
    assert all(f"\n- {name} (" in system["content"] for name in env.operators)
    assert user["content"] == f"{env.task.question}\nKind: math.\nWrite one workflow."


@pytest.mark.parametrize("demonstrator", ["sloppy", "expert"])
def test_demonstrations_of_one_shot_mode_are_bare_workflows(demonstrator):
    for transcript in demonstrate(COMPOSE, 20, demonstrator=demonstrator, one_shot=True):
        *before, said = transcript
        assert [message["role"] for message in before] == ["system", "user"]
        assert said.keys() == {"role", "content"}  # no call and no weight but 1
        assert made(one_shot=True).step(said["content"])[4]["call"] is not None


@pytest.mark.parametrize("form", FORMS)
def test_in_an_episode_of_several_turns_a_bare_workflow_is_a_call_with_a_repair(form):
    called, bare = made(), made()
    shown, *_ = called.step(run(DSL))
    observation, *_, info = bare.step(form)
    assert solution_in(observation) == solution_in(shown)
    assert info["repairs"] == ("bare_argument",)
    assert not bare.episode.over
    assert bare.episode.ledger.spent["repaired_call"] == 1
    assert made(parsing="strict").step(form)[4]["error"].code == "no_call"
