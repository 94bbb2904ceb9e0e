"""Processes, here threads, whose tool loops last differently long and that generate together."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.trl.tool_loop import SynchronisedGeneration, shared_prompts

pytestmark = pytest.mark.torch

FILLER = [0]


class Gathering:
    """Hands the numbers of all to all, and remembers how often and with what they generated."""

    def __init__(self, processes: int) -> None:
        self.barrier = threading.Barrier(processes, timeout=20)
        self.told = [0] * processes
        self.generated: list[list[int]] = [[] for _ in range(processes)]

    def exchange(self, process: int, number: int) -> list[int]:
        self.told[process] = number
        self.barrier.wait()
        found = list(self.told)
        self.barrier.wait()
        return found

    def play(self, process: int, turns: list[int]) -> list[Any]:
        """A loop that generates as many sequences as `turns` says, turn by turn."""
        meeting = SynchronisedGeneration(lambda number: self.exchange(process, number), FILLER)

        def generate(sequences: list[list[int]]) -> Any:
            self.generated[process].append(len(sequences))
            return [[*ids, 1] for ids in sequences], [[-1.0]] * len(sequences)

        turn = meeting.wrap(generate)
        said = [turn([[process, i] for i in range(count)])[0] for count in turns]
        meeting.drain(generate)
        return said


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=3))
def test_all_generate_equally_often_with_equally_much_and_keep_their_own(
    loops: list[list[int]],
) -> None:
    gathering = Gathering(len(loops))
    with ThreadPoolExecutor(len(loops)) as pool:
        said = list(pool.map(gathering.play, range(len(loops)), loops))
    assert len({tuple(sizes) for sizes in gathering.generated}) == 1
    for process, turns in enumerate(loops):
        assert said[process] == [[[process, i, 1] for i in range(count)] for count in turns]
    longest = max(len(turns) for turns in loops)
    most = [max(turns[i] for turns in loops if i < len(turns)) for i in range(longest)]
    assert gathering.generated[0] == [count for count in most if count]


def test_a_group_whose_prompts_differ_cannot_be_sent_as_one() -> None:
    assert shared_prompts([[1], [1], [2], [2]], 2)
    assert not shared_prompts([[1], [1], [2], [3]], 2)
    assert shared_prompts([[1], [2]], 1)
