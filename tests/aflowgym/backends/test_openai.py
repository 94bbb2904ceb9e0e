"""Operators on a server: AFlow's workflows end to end, and what an outage comes to."""

import json
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

pytest.importorskip("openai", reason="needs the extra `openai`")

from aflowgym import execute, grade, load_tasks, parse
from aflowgym.backends import make_backend
from aflowgym.backends.openai import OpenAIBackend
from aflowgym.sandbox import SandboxRefused, default_sandbox
from tests.aflowgym.backends.operator_model import OperatorModel
from tests.chat_server import ScriptedServer
from toolgym import policies, rollout
from toolgym.chat import ChatClient, ChatFault, ChatSettings
from toolgym.cli import application
from toolgym.errors import ConfigurationError

AFLOW = "Custom -> Programmer -> Review ? Revise : done"
TASKS = [task for split in ("train", "dev") for task in load_tasks("bundled", split)]
ONE_OF_EACH = [next(task for task in TASKS if task.kind == kind) for kind in ("math", "code", "qa")]
MATH, CODE, QA = ONE_OF_EACH
KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def model():
    return OperatorModel(TASKS)


@contextmanager
def served(model, latency=0.0, faults=(), **changed):
    """A backend on a server with a scripted model, and the server."""
    options = {"model": "m", "retries": 0, **changed}
    with ScriptedServer(model, latency=latency, faults=faults) as server:
        client = ChatClient(ChatSettings(base_url=server.url, **options))
        yield OpenAIBackend(client, getattr(model, "sandbox", None)), server
        client.close()


def ran(text, task, backend, **options):
    return execute(parse(text, kind=task.kind).workflow, task, backend, **options)


@pytest.mark.parametrize("task", ONE_OF_EACH, ids=lambda task: task.kind)
def test_aflows_own_workflow_runs_to_a_right_answer_that_costs_tokens_and_dollars(task, model):
    with served(model, prices={"m": (1.0, 3.0)}) as (backend, server):
        result = ran(AFLOW, task, backend)

    assert result.ok, result.failure
    assert grade(task, result.solution, model.sandbox).correct
    labels = [step.label for step in result.trace.walk()]
    assert labels[:4] == ["workflow", "Custom", "Programmer", "condition"]
    assert ("Revise" in labels) == (task.kind == "code")  # elsewhere the program has mended it
    used = result.usage
    assert used.calls == len(server.requests)
    assert backend.dollars(used) == pytest.approx((used.tokens_in + 3 * used.tokens_out) / 1e6)
    assert backend.dollars(used) == pytest.approx(backend.client.totals.dollars)


def test_branches_are_asked_with_seeds_of_their_own_and_a_run_asks_the_same_again(model):
    with served(model) as (backend, server):
        for seed in (0, 0, 1):
            ran("[Custom * 3] -> ScEnsemble", MATH, backend, seed=seed)

    seeds = [asked["seed"] for asked in server.requests]
    first, again, other = (set(seeds[start : start + 3]) for start in (0, 3, 6))
    assert len(first) == 3
    assert first == again
    assert not first & other
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_half_a_reply_is_no_solution(model):
    with served(model, faults=["length"]) as (backend, _):
        assert ran("Custom", MATH, backend).failure.code == "E-REPLY-CUT"


@pytest.mark.parametrize("name", ["500", "cut", "malformed JSON", "401", "429", "empty choices"])
def test_an_outage_is_a_fault_and_never_a_result(name, model):
    with (
        served(model, faults=lambda number, asked: name) as (backend, _),
        pytest.raises(ChatFault, match="chat server") as caught,
    ):
        ran("[Custom * 2] -> ScEnsemble", MATH, backend)

    assert KEY not in f"{caught.value!r}"


def evaluated(model, backend, ids, **options):
    options |= {"split": "train", "backend": backend, "sandbox": model.sandbox, "task_ids": ids}
    records = rollout.evaluate("aflowgym/Compose-v0", policies.ExpertPolicy(), **options).records
    return [record.to_json() for record in records]


def test_an_outage_leaves_an_episode_unscored_and_the_run_goes_on(model):
    def faults(number, asked):
        return "500" if MATH.question in asked["messages"][0]["content"] else None

    with served(model, faults=faults) as (backend, _):
        records = evaluated(model, backend, [task.id for task in ONE_OF_EACH])

    assert [record["scored"] for record in records] == [False, True, True]
    assert "status 500" in records[0]["fault"]
    assert KEY not in str(records)


def test_the_workflows_of_a_batch_of_episodes_are_on_the_server_at_the_same_time(model):
    math = [task.id for task in load_tasks("bundled", "train") if task.kind == "math"][:4]

    def played(batch):
        with served(model, latency=0.05) as (backend, server):
            return evaluated(model, backend, math, batch=batch), server.most_open

    (together, most), (alone, one) = played(4), played(1)

    assert together == alone
    assert most > one


def test_the_command_line_names_a_backend_with_its_options(model):
    try:
        default_sandbox()
    except SandboxRefused as problem:
        pytest.skip(str(problem))
    with ScriptedServer(model) as server:
        named = json.dumps({"name": "openai:m", "base_url": server.url})
        command = ["eval", "aflowgym/Compose-v0", "--n", "6", "--json", "--set", f"backend={named}"]
        done = CliRunner().invoke(application(), command)

    told = json.loads(done.stdout)
    assert (told["episodes"], told["unscored"], told["answered"]) == (6, 0, 1.0), told
    assert told["accuracy"] > 0.5
    assert KEY not in done.output


def test_a_backend_is_found_by_name_and_shared():
    options = {"base_url": "http://127.0.0.1:9/v1", "retries": 0}
    backend = make_backend("openai:m", **options)

    assert make_backend({"name": "openai:m", **options}) is backend
    assert make_backend("openai:m", **options, temperature=0.1) is not backend
    with pytest.raises(ConfigurationError, match=r"retrys: unknown setting.* retries"):
        make_backend("openai:m", retrys=1)
    with pytest.raises(ConfigurationError, match="has no options"):
        make_backend("simulated", retries=1)
