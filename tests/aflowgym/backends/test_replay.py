"""Recorded completions give the same run again, without the model."""

import pytest

from aflowgym import execute, load_tasks, parse
from aflowgym.backends import Recorder, Replay, ScriptedBackend, SimulatedBackend, make_backend
from toolgym.errors import ConfigurationError, EnvironmentFault

TRAIN = load_tasks("bundled", "train")
TASKS = [next(task for task in TRAIN if task.kind == kind) for kind in ("math", "code", "qa")]
TREE = parse("[Custom, Programmer, Programmer] -> MdEnsemble -> (Review -> Revise) * 2").workflow
SANDBOX = SimulatedBackend().sandbox


@pytest.fixture
def recorder():
    recorder = Recorder(SimulatedBackend("teaching"))
    for task in TASKS:
        execute(TREE, task, recorder, seed=5)
    return recorder


def test_a_recorded_run_is_given_again_from_a_file(recorder, tmp_path):
    path = tmp_path / "run.jsonl"
    recorder.save(path)
    replay = make_backend(f"replay:{path}")
    for task in TASKS:
        first = execute(TREE, task, SimulatedBackend("teaching"), seed=5)
        assert execute(TREE, task, replay, seed=5, sandbox=SANDBOX) == first


@pytest.mark.parametrize("change", ["seed", "task", "prompt"])
def test_what_was_not_recorded_is_a_fault_and_no_answer(recorder, change):
    replay = Replay(recorder.records)
    task = TRAIN[1] if change == "task" else TASKS[0]
    text = 'Custom("be brief")' if change == "prompt" else str(TREE)
    seed = 5 + (change == "seed")
    with pytest.raises(EnvironmentFault, match=r"was not recorded\. Record it again"):
        execute(parse(text).workflow, task, replay, seed=seed, sandbox=SANDBOX)


def test_a_file_that_is_no_recording_is_refused(tmp_path):
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"key": 1}\n', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="is not a recording"):
        Replay.load(broken)
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        Replay.load(tmp_path / "missing.jsonl")


def test_a_script_without_a_reply_is_a_fault_that_says_what_to_add():
    backend = ScriptedBackend({"Custom": ["Answer: 12"]})
    with pytest.raises(EnvironmentFault, match=r"no reply for Review\. Add \{'Review'"):
        execute(parse("Custom -> Review").workflow, TASKS[0], backend)
