"""`toolgym envs`: what it shows is what the classes say."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from sqlgym.envs.explore import ExploreEnv
from tests.toolgym.commands.command_line import install, run_here
from toolgym import RewardConfig
from toolgym.cli import application

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


def test_an_environment_is_listed_and_shown_with_schemas_defaults_and_reward_law():
    assert "sqlgym/Explore-v0" in {entry["id"] for entry in shown()}
    entry = shown("sqlgym/Explore-v0")

    assert entry["tools"] == ExploreEnv().tool_schemas()
    assert entry["terminal"] == ["answer"]
    defaults = entry["defaults"]
    assert (defaults["dataset"], defaults["split"], defaults["step_limit"]) == (
        "bundled", "train", 15,
    )  # fmt: skip
    assert entry["rewards"] == RewardConfig().model_dump()
    assert "answered:    score = 0.4 * progress - cost" in entry["law"]


def test_the_page_for_people_names_tools_arguments_and_law():
    page = run_here("envs", "sqlgym/Explore-v0").stdout

    assert "  query: Run one SELECT statement" in page
    assert "      sql (string): " in page
    assert "  answer (ends the episode): Submit the answer and end the episode.\n" in page
    assert "step_limit = 15" in page
    assert "correct:     score = 1 - cost" in page


def test_environments_of_another_package_are_shown_and_one_that_is_gone_is_left_out(stranger):
    done = run_here("envs", path=stranger)
    entry = json.loads(run_here("envs", "stranger/Echo-v0", "--json", path=stranger).stdout)
    made = json.loads(run_here("envs", "stranger/Made-v0", "--json", path=stranger).stdout)

    assert {"stranger/Echo-v0", "sqlgym/Explore-v0"} <= set(done.stdout.split())
    assert "stranger/Gone-v0" not in done.stdout
    [line] = done.stderr.splitlines()
    assert line.startswith("toolgym: stranger/Gone-v0 cannot be imported (stranger:gone)")
    assert "More about it" not in done.stdout
    assert (entry["rewards"]["partial"], entry["defaults"]["loud"]) == (0.35, False)
    assert made["description"] == "Say the word."
