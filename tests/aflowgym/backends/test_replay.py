"""Recorded completions: the same run again, without the one who spoke."""

import pytest

from aflowgym import execute, grade, load_tasks, parse
from aflowgym.backends import Recorder, Replay, ScriptedBackend, SimulatedBackend, make_backend
from toolgym.errors import ConfigurationError, EnvironmentFault

TRAIN = load_tasks("bundled", "train")
TASKS = [next(task for task in TRAIN if task.kind == kind) for kind in ("math", "code", "qa")]
TREE = parse("[Custom, Programmer, Programmer] -> MdEnsemble -> (Review -> Revise) * 2").workflow


@pytest.fixture
def recorder():
    recorder = Recorder(SimulatedBackend("teaching"))
    for task in TASKS:
        result = execute(TREE, task, recorder, seed=5)
        grade(task, result.solution, recorder.sandbox)
    return recorder


def test_a_recorded_run_is_given_again_from_a_file(recorder, tmp_path):
    path = tmp_path / "run.jsonl"
    recorder.save(path)
    replay = make_backend(f"replay:{path}")
    simulated = SimulatedBackend("teaching")
    for task in TASKS:
        first = execute(TREE, task, simulated, seed=5)
        again = execute(TREE, task, replay, seed=5)

        assert again == first
        assert grade(task, again.solution, replay.sandbox) == grade(
            task, first.solution, simulated.sandbox
        )


@pytest.mark.parametrize("change", ["seed", "task", "prompt"])
def test_what_was_not_recorded_is_a_fault_and_no_answer(recorder, change):
    replay = Replay(recorder.records)
    task = TRAIN[1] if change == "task" else TASKS[0]
    text = 'Custom("be brief")' if change == "prompt" else str(TREE)
    with pytest.raises(EnvironmentFault, match=r"was not recorded\. Record it again"):
        execute(parse(text).workflow, task, replay, seed=5 + (change == "seed"))


def test_a_file_that_is_no_recording_is_refused(tmp_path):
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"key": 1}\n', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="is no recording"):
        Replay.load(broken)
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        Replay.load(tmp_path / "missing.jsonl")


def test_a_backend_without_a_sandbox_is_recorded_without_one():
    recorder = Recorder(ScriptedBackend({"Custom": ["Answer: 12"]}))
    execute(parse("Custom").workflow, TASKS[0], recorder)

    assert recorder.sandbox is None
    assert len(recorder.records) == 1


def test_a_script_without_a_reply_says_whose():
    backend = ScriptedBackend({"Custom": ["Answer: 12"]})
    with pytest.raises(ConfigurationError, match="no reply for Review"):
        execute(parse("Custom -> Review").workflow, TASKS[0], backend)
