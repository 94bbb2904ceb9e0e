"""`toolgym play`: a person at a terminal, or lines in a pipe."""

import os
import select
import subprocess

import gymnasium as gym
import pytest
from hypothesis import settings
from typer.testing import CliRunner, Result

from sqlgym.envs.explore import ExploreEnv
from tests.toolgym.commands.command_line import SCRIPT, environ
from toolgym import Task, TaskSet, ToolEnv, tool
from toolgym.cli import application
from toolgym.commands.play import read_action
from toolgym.tools import specs_from

TOOLS = ExploreEnv.tools
SOME = settings(max_examples=40)
TASK = (
    "sqlgym/Explore-v0",
    "--task-id",
    "ferry_line-001",
)  # How many ports does the company serve?

SEVERAL = specs_from(
    [
        {
            "name": "turn",
            "parameters": {
                "properties": {"dial": {"type": "string"}, "to": {"type": "integer"}, "why": {}},
                "required": ["dial", "to"],
            },
        },
        {"name": "wait", "parameters": {"properties": {}}},
    ]
)


def played(*lines: str, options: tuple[str, ...] = TASK) -> Result:
    """Play an episode with these lines as the input, in this process."""
    typed = "".join(f"{line}\n" for line in lines)
    return CliRunner().invoke(application(), ["play", *options], input=typed)


def test_a_right_answer_is_told_with_the_parts_of_its_score():
    done = played("describe ports", "query SELECT COUNT(*) FROM ports", "answer 12")

    assert done.exit_code == 0, done.stderr
    assert "Task ferry_line-001" in done.stdout
    assert "How many ports does the company serve?" in done.stdout
    assert "[reward +0.600, 13 calls left]" in done.stdout
    assert "Correct. Score 0.981.\n  outcome +1.000\n  step -0.019\n" in done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "  ANSWER   12  ",
        '<tool_call>{"name": "answer", "arguments": {"value": 12}}</tool_call>',
    ],
)
def test_a_call_may_be_written_in_many_ways_and_needs_no_repair(line):
    assert "Correct. Score 1.000." in played(line).stdout


def test_a_mistake_of_the_agent_is_answered_as_a_model_would_be():
    page = played("describe portz", "quit").stdout

    assert "error[unknown_table]" in page
    assert "This works:" in page
    assert "[reward -0.028, 14 calls left]" in page


def test_a_line_that_is_no_call_costs_nothing():
    page = played("descrbe ports", "what now", "", "answer 12").stdout

    assert "'descrbe' is not a tool. Did you mean describe?" in page
    assert "'what' is not a tool. Type help to list the tools." in page
    assert "Score 1.000." in page


def hints(page: str) -> list[str]:
    """The calls that were hinted at, in their order."""
    return [line.removeprefix("hint: ") for line in page.splitlines() if line.startswith("hint: ")]


def test_a_hint_costs_nothing_and_is_the_first_call_of_the_expert_that_was_not_made():
    count = '{"name": "query", "arguments": {"sql": "SELECT count(*) FROM ports"}}'
    page = played("hint", "hint", "describe ports", "hint", count, "hint", "answer 12").stdout

    first = '{"name": "describe", "arguments": {"table_name": "ports"}}'
    assert hints(page) == [first, first, count, '{"name": "answer", "arguments": {"value": 12}}']
    assert "Correct. Score 0.981." in page


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (("answer 13",), TASK),
        (("describe ports", "describe ports"), (*TASK, "--step-limit", "2")),
    ],
)
def test_a_lost_episode_ends_with_the_solution(lines, options):
    page = played(*lines, options=options).stdout

    head, _, told = page.partition("\nThe solution\n")
    assert "Not correct. Score 0.000." in head or "the episode is over" in head
    assert "  gold SQL: SELECT count(*) FROM ports\n" in told
    assert "  result:\n    count(*)\n    12\n" in told
    assert "question:" not in told


class Door(ToolEnv):
    """Open the door."""

    def __init__(self, **options):
        super().__init__(TaskSet([Task("a", "Open it.")]), **options)

    def begin(self, task):
        return task.question

    def expert(self):
        yield {"name": "pull", "arguments": {"hard": 3}}

    @tool(terminal=True)
    def pull(self, hard: int) -> str:
        """Pull the handle.

        Args:
            hard: How hard.
        """
        return self.submit(hard == 3)


def test_without_a_solution_of_the_family_the_expert_answers():
    gym.register("door/Door-v0", entry_point=Door)
    try:
        page = played("pull 1", options=("door/Door-v0",)).stdout
    finally:
        del gym.registry["door/Door-v0"]

    assert 'last call of the expert: {"name": "pull", "arguments": {"hard": 3}}' in page
    assert "pull HARD (ends the episode, costs no call): Pull the handle." in page


def test_leaving_before_the_end_counts_as_unanswered():
    done = played()

    assert done.exit_code == 0
    assert "Not answered. Score -0.050.\n  unanswered -0.050\n" in done.stdout


@pytest.mark.integration
def test_a_person_at_a_terminal_can_play():
    pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
    ours, theirs = pty.openpty()
    command = [SCRIPT, "play", *TASK]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ(TERM="dumb")
    ) as process:
        os.close(theirs)
        # Each line waits for its prompt: what is typed while a terminal is set up may be dropped.
        page = read_to(ours, b"> ")
        os.write(ours, b"describe ports\n")
        page += read_to(ours, b"> ")
        os.write(ours, b"answer 12\n")
        page += read_all(ours)
        process.wait(timeout=600)

    assert process.returncode == 0
    assert b"ports (12 rows)" in page
    assert b"Correct. Score 0.990." in page


def read_to(terminal: int, end: bytes) -> bytes:
    """What is written to a terminal up to the first `end`."""
    page = b""
    while end not in page:
        page += read_some(terminal)
    return page


def read_some(terminal: int) -> bytes:
    """The next piece; a silence of ten minutes is a failure, not a wait for ever."""
    readable, _, _ = select.select([terminal], [], [], 600)
    if not readable:
        raise TimeoutError("the program wrote nothing for ten minutes")
    return os.read(terminal, 4096)


def read_all(terminal: int) -> bytes:
    """What is written to a terminal until the other side is closed."""
    page = b""
    while True:
        try:
            piece = read_some(terminal)
        except OSError:  # Linux says "input/output error" where others say "end of file"
            piece = b""
        if not piece:
            os.close(terminal)
            return page
        page += piece


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("turn left 5", {"dial": "left", "to": 5}),
        ("turn left 5 it is stuck", {"dial": "left", "to": 5, "why": "it is stuck"}),
        ("turn", {}),
        ("wait long", {}),
    ],
)
def test_several_arguments_are_given_word_by_word(line, arguments):
    assert read_action(line, SEVERAL)["arguments"] == arguments
