"""The contract of an adapter holds where nothing is changed, and breaks where anything is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.adapters.scripted_contract import (
    SAME,
    NotCarried,
    Played,
    check_episode,
    play_plainly,
)
from tests.adapters.scripted_episodes import SCRIPTS, ScriptedEpisode
from toolgym.testing import ContractBroken

BY_NAME = {script.name: script for script in SCRIPTS}
Change = Callable[[Played], Played]


def of_last_turn(**values: Any) -> Change:
    return lambda played: replace(
        played, turns=(*played.turns[:-1], replace(played.turns[-1], **values))
    )


def test_the_environment_keeps_the_contract_with_itself() -> None:
    assert {check_episode(play_plainly, script, {}) for script in SCRIPTS} == {SAME}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda played: replace(played, score=played.score + 1e-6), "the score is 0.9"),
        (
            lambda played: replace(played, turns=played.turns[1:]),
            "3 turns were to be played, and 2",
        ),
        (of_last_turn(observation="Well done."), "the observation of turn 3 is 'Well done.'"),
        (of_last_turn(reward=0.0), "the reward of turn 3 is 0.0"),
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
