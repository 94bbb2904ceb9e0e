"""`toolgym envs`: what it shows is what the classes say."""

import json
from typing import Any

import gymnasium as gym
import pytest
from typer.testing import CliRunner

from sqlgym.envs.explore import ExploreEnv
from tests.toolgym.commands.command_line import install, run, run_here
from toolgym import RewardConfig, Task, TaskSet, ToolEnv
from toolgym.cli import application
from toolgym.commands.envs import describe

STRANGER = '''
    import gymnasium as gym
    from toolgym import Task, TaskSet, ToolEnv, tool

    class Echo(ToolEnv):
        """Say the word.

        More about it, which a list need not show.
        """

        def __init__(self, loud: bool = False, rewards=None):
            super().__init__(TaskSet([Task("a", "Say hi.")]), rewards=rewards)

        def begin(self, task):
            return task.question

        @tool(terminal=True)
        def say(self, word: str, times: int = 1) -> str:
            """Say a word and be done.

            Args:
                word: The word.
                times: How often.
            """
            return self.submit(word == "hi")

    gym.register("stranger/Echo-v0", entry_point="stranger:Echo",
                 kwargs={"rewards": {"partial": 0.35}})
    gym.register("stranger/Made-v0", entry_point="stranger:made")
    gym.register("stranger/Gone-v0", entry_point="stranger:gone")

    def made(**options):
        return Echo(**options)
'''


@pytest.fixture
def stranger(tmp_path):
    """A folder with an installed package that brings environments of its own."""
    point = {"toolgym.environments: stranger": "stranger"}
    return install(tmp_path, "stranger", STRANGER, point)


def shown(*arguments: str) -> Any:
    """What `toolgym envs ARGUMENTS --json` prints."""
    done = CliRunner().invoke(application(), ["envs", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_list_holds_every_environment_with_its_tools():
    entries = {entry["id"]: entry for entry in shown()}

    tools = [tool["function"]["name"] for tool in entries["sqlgym/Explore-v0"]["tools"]]
    assert tools == ["describe", "sample", "query", "answer"]


def test_one_environment_is_shown_with_the_schemas_that_a_model_sees():
    entry = shown("sqlgym/Explore-v0")

    assert entry["tools"] == ExploreEnv().tool_schemas()
    assert entry["terminal"] == ["answer"]


def test_the_defaults_are_those_of_the_class():
    defaults = shown("sqlgym/Explore-v0")["defaults"]

    assert (defaults["dataset"], defaults["split"]) == ("bundled", "train")
    assert defaults["step_limit"] == 15


def test_the_reward_law_is_told_with_the_weights_put_in():
    entry = shown("sqlgym/Explore-v0")

    assert entry["rewards"] == RewardConfig().model_dump()
    assert "answered:    score = 0.4 * progress - cost" in entry["law"]
    assert "cost = 0.2 * (1 - exp(-sum of costs / 0.2))" in entry["law"]
    assert "by at least 0.3" in entry["law"]


def test_the_page_for_people_names_tools_arguments_and_law():
    page = run_here("envs", "sqlgym/Explore-v0").stdout

    assert "  query: Run one SELECT statement" in page
    assert "      sql (string): " in page
    assert "  answer (ends the episode): Submit the answer and end the episode.\n" in page
    assert "step_limit = 15" in page
    assert "correct:     score = 1 - cost" in page


def test_a_list_in_a_pipe_keeps_each_environment_on_one_line():
    lines = run_here("envs").stdout.splitlines()

    [line] = [line for line in lines if line.startswith("sqlgym/Explore-v0")]
    assert "describe, sample, query, answer" in line


def test_an_unknown_environment_is_told_with_the_nearest():
    done = CliRunner().invoke(application(), ["envs", "sqlgym/Exploar-v0"])

    assert done.exit_code == 2
    assert "Did you mean sqlgym/Explore-v0?" in done.stderr
    assert "sqlgym/Explore-v0" in done.stderr


def test_an_environment_without_tools_is_refused():
    done = CliRunner().invoke(application(), ["envs", "CartPole-v1"])

    assert done.exit_code == 2
    assert "'CartPole-v1' has no tools" in done.stderr


def test_environments_of_another_package_are_listed_beside_ours(stranger):
    done = run_here("envs", path=stranger)

    assert done.returncode == 0
    assert "stranger/Echo-v0" in done.stdout
    assert "Say the word." in done.stdout
    assert "More about it" not in done.stdout
    assert "sqlgym/Explore-v0" in done.stdout


def test_registered_arguments_count_as_defaults(stranger):
    entry = json.loads(run_here("envs", "stranger/Echo-v0", "--json", path=stranger).stdout)

    assert entry["rewards"]["partial"] == 0.35
    assert entry["defaults"]["loud"] is False
    assert "score = 0.35 * progress" in entry["law"]


class Locks(ToolEnv):
    """Open the safe, as in docs/own-environment.md."""

    def __init__(self, digits: int = 10, **options):
        super().__init__(TaskSet([Task("a", "Open it.")], name="safes"), **options)

    def begin(self, task):
        return task.question


class PlainLocks(Locks):
    """Open the safe with what it brings."""


def test_options_that_are_handed_on_to_the_base_are_shown_with_its_defaults():
    env_id = "safes/Locks-v0"
    gym.register(env_id, entry_point=PlainLocks)
    try:
        told = describe(env_id)["defaults"]
    finally:
        del gym.registry[env_id]

    rest = {"rewards": None, "render_mode": None}
    assert told == {"digits": 10, "step_limit": 15, "parsing": "lenient", **rest}


def test_an_environment_that_a_function_makes_is_shown_too(stranger):
    entry = json.loads(run_here("envs", "stranger/Made-v0", "--json", path=stranger).stdout)

    assert entry["description"] == "Say the word."


def test_an_environment_that_cannot_be_imported_is_left_out_with_one_line(stranger):
    done = run_here("envs", path=stranger)

    assert "stranger/Gone-v0" not in done.stdout
    [line] = done.stderr.splitlines()
    assert line.startswith("toolgym: stranger/Gone-v0 cannot be imported (stranger:gone)")


@pytest.mark.integration
def test_a_broken_family_is_told_in_one_line(tmp_path):
    point = {"toolgym.environments: crash": "broken"}
    install(tmp_path, "broken", "raise RuntimeError('its import fails')", point)

    done = run("envs", path=tmp_path)

    assert "sqlgym/Explore-v0" in done.stdout
    assert done.stderr == (
        "toolgym: environments of 'crash' are skipped: RuntimeError: its import fails\n"
    )
