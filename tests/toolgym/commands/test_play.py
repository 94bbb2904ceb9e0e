"""`toolgym play`: a person at a terminal, or lines in a pipe."""

import contextlib
import json
import os
import select
import signal
import subprocess

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from sqlgym.envs.explore import ExploreEnv
from tests.toolgym.commands.command_line import SCRIPT, environ
from toolgym import Task, TaskSet, ToolEnv, parse_calls, policies, rollout, tool
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
        "answer(value=12)",
        '{"name": "answer", "arguments": {"value": 12}}',
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
    assert "'what' is not a tool. Type help to see them." in page
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


def test_a_won_episode_ends_without_the_solution():
    assert "The solution" not in played("answer 12").stdout


class Door(ToolEnv):
    """Open the door."""

    def __init__(self, **options):
        super().__init__(TaskSet([Task("a", "Open it.")]), **options)

    def begin(self, task):
        return task.question

    @tool(terminal=True)
    def pull(self, hard: int) -> str:
        """Pull the handle.

        Args:
            hard: How hard.
        """
        return self.submit(hard == 3)


class KnownDoor(Door):
    """Open the door as others did."""

    def expert(self):
        yield {"name": "pull", "arguments": {"hard": 3}}


@pytest.fixture
def door(request):
    """The id of an environment, registered for one test."""
    env_id = f"door/{request.param.__name__}-v0"
    gym.register(env_id, entry_point=request.param)
    yield env_id
    del gym.registry[env_id]


@pytest.mark.parametrize("door", [KnownDoor], indirect=True)
def test_without_a_solution_of_the_family_the_expert_answers(door):
    page = played("pull 1", options=(door,)).stdout

    assert 'last call of the expert: {"name": "pull", "arguments": {"hard": 3}}' in page
    assert "pull HARD (ends the episode, costs no call): Pull the handle." in page


@pytest.mark.parametrize("door", [Door], indirect=True)
def test_without_an_expert_there_is_no_hint(door):
    page = played("hint", "pull 1", options=(door,)).stdout

    assert "Door has no expert" in page


def test_help_names_the_tools_with_their_arguments():
    page = played("help", "quit").stdout

    assert page.count("  query SQL: Run one SELECT statement") == 2


@pytest.mark.parametrize("lines", [("quit",), ()])
def test_leaving_before_the_end_counts_as_unanswered(lines):
    done = played(*lines)

    assert done.exit_code == 0
    assert "Not answered. Score -0.050.\n  unanswered -0.050\n" in done.stdout


def test_a_seed_chooses_the_task():
    first, again = (played("quit", options=("sqlgym/Explore-v0", "--seed", "3")) for _ in range(2))

    assert first.stdout.startswith("Task ")
    assert first.stdout == again.stdout


@pytest.mark.integration
def test_lines_can_be_piped_into_the_command_and_bytes_that_are_no_text_do_not_end_it():
    done = subprocess.run(
        [SCRIPT, "play", *TASK],
        input=b"\xff\xfe\ndescribe \xff\nanswer 12\n",
        env=environ(),
        capture_output=True,
        timeout=600,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"> answer 12\nAnswer recorded." in done.stdout
    assert b"error[unknown_table]" in done.stdout
    assert b"Correct. Score 0.9" in done.stdout


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


@pytest.mark.integration
def test_an_interrupt_at_the_prompt_ends_with_130_and_a_short_line():
    pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
    ours, theirs = pty.openpty()
    command = [SCRIPT, "play", *TASK]
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environ(TERM="dumb"),
        start_new_session=True,
    ) as process:
        os.close(theirs)
        page = read_to(ours, b"> ")
        interrupt(process)
        page += read_all(ours)

    assert process.returncode == 130
    assert b"toolgym: interrupted." in page
    assert b"Traceback" not in page


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


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Press Ctrl-C until it is noticed: just after the prompt there is a moment of deafness."""
    for _ in range(600):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
            return
    process.kill()


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


@SOME
@given(st.text(min_size=1).map(str.strip).filter(bool))
def test_any_line_is_an_action_or_is_none(line):
    action = read_action(line, TOOLS)

    assert action is None or isinstance(action, str | dict)


@SOME
@given(
    st.sampled_from(["describe", "sample", "query"]),
    st.text(min_size=1).map(str.strip).filter(bool),
)
def test_the_rest_of_a_line_is_the_one_argument_as_it_was_written(name, text):
    [argument] = TOOLS[name].arguments.model_fields

    action = read_action(f"{name} {text}", TOOLS)

    assert action == {"name": name, "arguments": {argument: text}}


@SOME
@given(st.one_of(st.integers(), st.booleans(), st.lists(st.integers(), max_size=3)))
def test_a_value_in_json_keeps_its_type(value):
    action = read_action(f"answer {json.dumps(value)}", TOOLS)

    [call] = parse_calls(action, TOOLS)
    assert call.arguments == {"value": value}
    assert type(call.arguments["value"]) is type(value)


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("turn left 5", {"dial": "left", "to": 5}),
        ("turn left 5 it is stuck", {"dial": "left", "to": 5, "why": "it is stuck"}),
        ("turn left's 5", {"dial": "left's", "to": 5}),
        ("turn left", {"dial": "left"}),
        ("turn", {}),
        ("wait", {}),
        ("wait long", {}),
    ],
)
def test_several_arguments_are_given_word_by_word(line, arguments):
    assert read_action(line, SEVERAL)["arguments"] == arguments


@pytest.mark.nightly
def test_who_follows_each_hint_plays_the_episode_of_the_expert():
    env_id = "aflowgym/Operate-v0"
    expected = [
        {"name": call["name"], "arguments": call["arguments"]}
        for turn in rollout.play(env_id, policies.ExpertPolicy(), seed=1).turns
        for call in turn["calls"]
    ]

    lines = [line for call in expected for line in ("hint", json.dumps(call))]
    page = played(*lines, options=(env_id, "--seed", "1")).stdout

    assert [json.loads(call) for call in hints(page)] == expected
