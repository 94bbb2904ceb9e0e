"""`toolgym eval`: figures, files and refusals, and what wrong use is told."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.toolgym.commands.command_line import install, run_here
from toolgym import read_episodes
from toolgym.cli import application
from toolgym.policies import ExpertPolicy
from toolgym.runs.run import Run

ENV_ID = "sqlgym/Explore-v0"

STRANGER = '''
    import gymnasium as gym
    from toolgym import EnvironmentFault, Task, TaskRefused, TaskSet, ToolEnv, tool

    def verify(task):
        if task.id == "odd":
            raise TaskRefused("odd", "empty_gold", "its gold is empty.")

    class Word(ToolEnv):
        """Say the word."""

        def __init__(self, faulty: bool = False):
            tasks = [Task(name, f"Say {name}.") for name in ("hi", "ho", "odd")]
            super().__init__(TaskSet(tasks, name="words", verify=verify), step_limit=3)
            self.faulty = faulty

        def begin(self, task):
            return task.question

        def expert(self):
            yield {"name": "say", "arguments": {"word": self.task.id}}

        @tool(terminal=True)
        def say(self, word: str) -> str:
            """Say a word and be done.

            Args:
                word: The word.
            """
            if self.faulty:
                raise EnvironmentFault("the voice is gone.")
            return self.submit(word == self.task.id)

    gym.register("stranger/Word-v0", entry_point="stranger:Word")
    gym.register("stranger/Faulty-v0", entry_point="stranger:Word", kwargs={"faulty": True})
'''


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A folder with an installed package: an environment with three tasks, one of them refused."""
    point = {"toolgym.environments: stranger": "stranger"}
    return install(tmp_path, "stranger", STRANGER, point)


def evaluated(*arguments: str, env_id: str = ENV_ID) -> Result:
    """Run `toolgym eval sqlgym/Explore-v0 ARGUMENTS` in this process."""
    return CliRunner().invoke(application(), ["eval", env_id, *arguments])


def figures(*arguments: str) -> dict[str, Any]:
    """What it prints with `--json`."""
    done = evaluated("--json", *arguments)
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_the_expert_is_right_and_the_figures_say_so():
    told = figures("--n", "6")

    assert (told["episodes"], told["accuracy"], told["validity"]) == (6, 1.0, 1.0)
    assert told["interval"][0] < 1.0 == pytest.approx(told["interval"][1])
    assert 0.8 <= told["mean_score"] <= 1.0
    assert told["refused"] == []
    assert told["policy"] == "expert"


def test_the_first_lines_say_which_policy_played_which_tasks(stranger):
    shown = evaluated("--n", "1").stdout.splitlines()
    assert shown[0].startswith("policy")
    assert "expert (the built-in solver; choose another with --policy)" in shown[0]
    assert "1.000  [0.207, 1.000]" in "\n".join(shown)
    rows = {line[:10].strip(): line[10:].split()[0] for line in shown}
    assert (rows["data set"], rows["split"]) == ("bundled", "dev")
    other = run_here("eval", "stranger/Word-v0", path=stranger).stdout
    assert re.search(r"^data set +words *\nsplit +none *$", other, re.M)


def test_the_random_policy_repeats_itself_with_its_seed():
    options = ("--n", "2", "--k", "2", "--transcripts", "1", "--seed", "5", "--step-limit", "6")
    first, again = (figures("--policy", "random", *options) for _ in range(2))

    assert first == again
    assert (first["episodes"], first["step_limit"]) == (4, 6)
    assert first["accuracy"] < 1.0
    assert first["pass_at_k"].keys() == {"1", "2"}


def test_refused_tasks_are_listed_with_their_reasons(stranger):
    listed = run_here("eval", "stranger/Word-v0", "--json", path=stranger)
    page = run_here("eval", "stranger/Word-v0", path=stranger).stdout

    told = json.loads(listed.stdout)
    assert "split" not in told  # the environment has none
    refusal = {"task_id": "odd", "code": "empty_gold", "reason": "its gold is empty."}
    assert (told["episodes"], told["accuracy"], told["refused"]) == (2, 1.0, [refusal])
    assert "refused: 1 (1 empty_gold)\n  odd [empty_gold] its gold is empty.\n" in page


def test_an_environment_that_fails_throughout_is_a_failure_and_not_an_accuracy(stranger):
    done = run_here("eval", "stranger/Faulty-v0", "--json", path=stranger)

    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert (told["accuracy"], told["unscored"]) == (None, 2)
    assert "no episode could be scored" in done.stderr


def test_a_model_without_the_extra_is_told_what_to_install(tmp_path):
    module = "import a_training_library_that_is_not_there"
    install(tmp_path, "stranger", module, {"toolgym.policies: model": "stranger:load"})

    done = run_here("eval", ENV_ID, "--policy", "org/model", "--n", "1", path=tmp_path)

    assert done.returncode == 2
    assert "pip install 'toolgym[train]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_policy_of_a_package_gets_name_seed_and_temperature(tmp_path):
    module = """
        class Guess:
            name = "guess"
            def __init__(self, said):
                self.said = said
            def act(self, situations):
                return [{"name": "answer", "arguments": {"value": self.said}} for _ in situations]

        def load(name, **options):
            return Guess(f"{name} {options}")
    """
    install(tmp_path, "stranger", module, {"toolgym.policies: model": "stranger:load"})
    options = ("--policy", "org/model", "--temperature", "0.5", "--seed", "3", "--n", "1")

    done = run_here("eval", ENV_ID, *options, "--transcripts", "1", "--json", path=tmp_path)

    [record] = json.loads(done.stdout)["transcripts"]
    said = record["turns"][0]["calls"][0]["arguments"]["value"]
    assert said == "org/model {'seed': 3, 'temperature': 0.5}"


def test_any_argument_of_the_environment_can_be_set():
    settings = ("--set", "match=spider", "--set", 'tools=["answer"]')
    result = evaluated("--n", "1", "--json", *settings, env_id="sqlgym/TextToSQL-v0")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["match"], told["tools"], told["accuracy"]) == ("spider", ["answer"], 1.0)


# What is kept -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The folders of two evaluations, of the expert and of random calls."""
    place = tmp_path_factory.mktemp("kept")
    for policy in ("expert", "random"):
        done = run_here("eval", ENV_ID, "--n", 4, "--policy", policy, "--out", place / policy)
        assert done.returncode == 0, done.stderr
        assert f"Evaluation: {place / policy}" in done.stderr
    return place


def test_a_folder_keeps_the_episodes_and_what_was_played(kept):
    run = Run.open(kept / "expert")
    assert run.is_complete
    assert (run.config["kind"], run.config["policy"]) == ("evaluation", "expert")
    assert run.config["settings"]["env_kwargs"] == {"split": "dev"}
    records = read_episodes(kept / "expert")
    assert [record.correct for record in records] == [True] * 4
    assert run.summary["evaluations"][0]["after"]["accuracy"] == 1.0
    assert read_episodes(kept / "expert", "eval") == records


def test_an_evaluation_can_be_merged_and_is_never_written_over(kept, tmp_path):
    merged = run_here("merge", kept / "expert", "--json")
    assert json.loads(merged.stdout)["accuracy"] == 1.0
    again = run_here("eval", ENV_ID, "--n", 2, "--out", kept / "expert")
    assert f"Evaluation: {kept / 'expert-2'}" in again.stderr
    assert len(read_episodes(kept / "expert")) == 4


def test_an_evaluation_that_was_interrupted_keeps_what_was_played(tmp_path, monkeypatch):
    class Stops(ExpertPolicy):
        turns = 0

        def act(self, situations):
            self.turns += 1
            if self.turns > 8:
                raise KeyboardInterrupt
            return super().act(situations)

    monkeypatch.setattr("toolgym.policies.ExpertPolicy", Stops)
    folder = tmp_path / "kept"
    done = run_here("eval", ENV_ID, "--n", 4, "--batch", 1, "--out", folder)
    assert done.returncode == 130
    assert 0 < len(read_episodes(folder)) < 4
    assert not Run.open(folder).is_complete
    refused = run_here("merge", folder)
    assert (refused.returncode, "is incomplete" in refused.stderr) == (2, True)
