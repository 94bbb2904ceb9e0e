"""The contract of an adapter holds where nothing is changed, and breaks where anything is."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from toolgym import registration
from toolgym.testing.adapter import (
    SAME,
    NotCarried,
    Played,
    PlayedTurn,
    check_adapter,
    check_episode,
    contract_table,
    json_calls,
    play_plainly,
)
from toolgym.testing.contract import ContractBroken
from toolgym.testing.scripts import SCRIPTS, ScriptedEpisode, call

BY_NAME = {script.name: script for script in SCRIPTS}
Change = Callable[[Played], Played]


def of_last_turn(**values: Any) -> Change:
    return lambda played: replace(
        played, turns=(*played.turns[:-1], replace(played.turns[-1], **values))
    )


def test_there_are_at_least_twenty_episodes_of_two_families_each_with_its_own_name() -> None:
    assert len(BY_NAME) == len(SCRIPTS) >= 20
    assert {script.env_id.partition("/")[0] for script in SCRIPTS} == {"sqlgym", "aflowgym"}


def test_the_environment_keeps_the_contract_with_itself() -> None:
    assert set(check_adapter(play_plainly).values()) == {SAME}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("null_arguments", {"dropped_null"}),
        ("renamed_key", {"renamed_key"}),
        ("tool_alias", {"renamed_tool"}),
        ("misspelt_tool", {"renamed_tool"}),
        ("unknown_tool", {"unknown_tool"}),
        ("unknown_argument", {"dropped_argument"}),
        ("missing_argument", {"missing_argument"}),
        ("wrong_type", {"invalid_argument"}),
        ("nested_arguments", {"unwrapped_arguments"}),
        ("encoded_arguments", {"decoded_arguments"}),
        ("broken_json", {"repaired_json"}),
        ("cut_off", {"truncated_call"}),
        ("answer_and_call", {"episode_over"}),
        ("no_call", {"no_call"}),
        ("unknown_column", {"unknown_column"}),
        ("not_allowed", {"not_allowed"}),
        ("budget_spent", {"episode_over"}),
        ("after_the_end", {"episode_over"}),
        ("huge_text", {"too_large"}),
        ("lone_surrogate", {"replaced_surrogate"}),
        ("strict_parsing", {"unexpected_argument"}),
        ("wrong_workflow", {"invalid_workflow"}),
        ("operators", {"needs_solution"}),
    ],
)
def test_an_episode_shows_what_it_is_named_for(name: str, shown: set[str]) -> None:
    turns = play_plainly(BY_NAME[name]).turns

    assert {code for turn in turns for code in (*turn.repairs, *turn.errors)} == shown


def test_a_fault_ends_an_episode_without_a_score_and_without_its_turn() -> None:
    played = play_plainly(BY_NAME["fault"])

    assert math.isnan(played.score)
    assert len(played.turns) == len(BY_NAME["fault"].messages) - 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda played: replace(played, prompt="What?"), r"the prompt is 'What\?'"),
        (lambda played: replace(played, score=played.score + 1e-6), "the score is 0.9"),
        (lambda played: replace(played, score=math.nan), "the score is nan"),
        (lambda played: replace(played, correct=False), "the correct is False"),
        (
            lambda played: replace(played, turns=played.turns[1:]),
            "3 turns were to be played, and 2",
        ),
        (of_last_turn(observation="Well done."), "the observation of turn 3 is 'Well done.'"),
        (of_last_turn(reward=0.0), "the reward of turn 3 is 0.0"),
        (of_last_turn(repairs=("dropped_null",)), "the repairs of turn 3 is"),
        (of_last_turn(errors=None), "the errors of turn 3 is None"),
        (of_last_turn(over=False), "the over of turn 3 is False"),
    ],
)
def test_a_framework_that_changes_anything_breaks_the_contract(change: Change, told: str) -> None:
    with pytest.raises(ContractBroken, match=f"clean .*: {told}"):
        check_episode(lambda script: change(play_plainly(script)), BY_NAME["clean"], {})


def refuses(script: ScriptedEpisode) -> Played:
    raise NotCarried("a message without a whole call")


def test_what_is_not_carried_needs_a_reason_and_then_is_told_with_it() -> None:
    with pytest.raises(ContractBroken, match="a message without a whole call was not carried"):
        check_episode(refuses, BY_NAME["cut_off"], {})

    assert check_episode(refuses, BY_NAME["cut_off"], {"cut_off": "so it is"}) == "so it is"


def test_an_exemption_that_is_not_needed_breaks_the_contract() -> None:
    with pytest.raises(ContractBroken, match="take it off the list"):
        check_episode(play_plainly, BY_NAME["clean"], {"clean": "never tried"})
    with pytest.raises(ContractBroken, match="the reward is exempt, and reported"):
        check_episode(play_plainly, BY_NAME["clean"], {"reward": "never tried"})
    with pytest.raises(ContractBroken, match="there is no episode or field 'cleen'"):
        check_episode(play_plainly, BY_NAME["clean"], {"cleen": "a slip"})


def test_a_field_that_is_not_reported_can_be_exempt() -> None:
    without = of_last_turn(reward=None)

    verdict = check_episode(
        lambda script: without(play_plainly(script)),
        BY_NAME["right_at_once"],
        {"reward": "one for each episode"},
    )

    assert verdict == SAME


def test_calls_are_read_as_a_host_does_that_knows_json_only() -> None:
    two = f"First {call('a', x=1)}\nthen {call('b')}"

    assert json_calls(two) == [{"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {}}]


@pytest.mark.parametrize(
    ("name", "lack"),
    [
        ("broken_json", "a call that is no JSON"),
        ("cut_off", "a message without a whole call"),
        ("no_call", "a message without a whole call"),
        ("encoded_arguments", "arguments that are no object"),
    ],
)
def test_what_is_no_plain_json_cannot_be_handed_on(name: str, lack: str) -> None:
    with pytest.raises(NotCarried, match=lack):
        json_calls(BY_NAME[name].messages[0])


def test_a_turn_of_an_environment_is_told_as_it_was() -> None:
    env = registration.make("sqlgym/Explore-v0")
    env.reset(options={"task_id": "mountain_huts-039"})
    text, reward, *_ = env.step(call("describe", table="huts"))

    told = PlayedTurn.of(env.episode.turns[-1], env.episode.over)

    assert told == PlayedTurn(text, reward, ("renamed_key",), (), False)


def test_the_table_has_a_column_for_each_adapter_and_a_line_for_each_reason() -> None:
    verdicts = {
        "one": {"clean": SAME, "cut_off": "whole calls only", "no_call": "whole calls only"},
        "two": {"clean": SAME, "cut_off": SAME},
    }

    assert contract_table(verdicts).splitlines() == [
        "episode  one   two",
        "clean    same  same",
        "cut_off  -     same",
        "no_call  -     not played",
        "",
        "-: cannot be carried",
        "one: whole calls only (cut_off, no_call)",
    ]
