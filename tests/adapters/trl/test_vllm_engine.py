"""`VllmEngine`: turns of all sequences at a time, here by a `vllm_generation` that counts up."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.trl.vllm_engine import VllmEngine
from toolgym.generation import Generation

pytestmark = pytest.mark.torch

EOS, FILLER = 9, 0
Turns = Callable[[list[int]], list[int]]


class Vllm:
    """As TRL's `VLLMGeneration`: a turn of each prompt, and a list of values for each token."""

    def __init__(self, turn: Turns) -> None:
        self.turn, self.asked = turn, list[list[list[int]]]()

    def generate(self, *, prompts: list[list[int]], images: None, num_generations: int) -> Any:
        assert num_generations == 1
        self.asked.append([list(prompt) for prompt in prompts])
        turns = [self.turn(prompt) for prompt in prompts]
        values = [[[-0.5, -3.0] for _ in turn] for turn in turns]
        return prompts, turns, values, None


def engine_of(turn: Turns, longest: int | None = None) -> tuple[VllmEngine, Vllm]:
    vllm = Vllm(turn)
    trainer = SimpleNamespace(
        model=None,
        vllm_generation=vllm,
        args=SimpleNamespace(vllm_max_model_length=longest),
    )
    return VllmEngine(trainer, FILLER), vllm


def test_turns_and_answers_alternate_with_their_mask_and_log_probabilities() -> None:
    engine, vllm = engine_of(lambda prompt: [len(prompt), EOS])
    each = Generation([1, 2], "", 20)

    engine.generate([each], lambda ended: [[7, 8]] if len(each.turns) == 1 else [None])

    assert vllm.asked == [[[1, 2]], [[1, 2, 2, EOS, 7, 8]]]
    assert each.tokens == [2, EOS, 7, 8, 6, EOS]
    assert each.mask == [1, 1, 0, 0, 1, 1]
    assert each.log_probs == [-0.5, -0.5, 0.0, 0.0, -0.5, -0.5]
    assert each.turns == [(0, 2), (4, 6)]


def test_a_generation_ends_with_the_answer_none_and_others_go_on() -> None:
    engine, vllm = engine_of(lambda prompt: [EOS])
    one, other = Generation([1], "", 9), Generation([2], "", 9)

    engine.generate(
        [one, other],
        lambda ended: [None if each is one or len(each.turns) == 2 else [5] for each in ended],
    )

    assert [one.tokens, other.tokens] == [[EOS], [EOS, 5, EOS]]
    assert vllm.asked == [[[1], [2]], [[2, EOS, 5]]]


def test_without_a_reply_each_generation_has_one_turn() -> None:
    engine, _ = engine_of(lambda prompt: [3, EOS])
    each = Generation([1], "", 9)

    engine.generate([each])

    assert each.turns == [(0, 2)]


def test_a_turn_is_cut_at_the_room_of_its_generation_and_at_its_own_limit() -> None:
    engine, _ = engine_of(lambda prompt: [3] * 6)
    narrow, wide = Generation([1], "", 2), Generation([1], "", 9)

    engine.generate([narrow, wide], turn_tokens=4)

    assert (len(narrow.tokens), len(wide.tokens)) == (2, 4)
    for each in (narrow, wide):
        assert len(each.tokens) == len(each.mask) == len(each.log_probs) == each.turns[0][1]


def test_the_longest_sequence_of_vllm_limits_prompt_and_turns_together() -> None:
    engine, vllm = engine_of(lambda prompt: [3] * 6, longest=5)
    short, long = Generation([1, 2], "", 9), Generation([1, 2, 3, 4, 5], "", 9)

    engine.generate([short, long])

    assert vllm.asked == [[[1, 2]]]
    assert (short.max_tokens, len(short.tokens)) == (3, 3)
    assert (long.tokens, long.turns) == ([], [])


def test_a_log_probability_that_vllm_does_not_know_is_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, vllm = engine_of(lambda prompt: [3, EOS])
    known = vllm.generate

    def generate(**options: Any) -> Any:
        prompts, turns, _, _ = known(**options)
        return prompts, turns, [[[None], [-0.5]] for _ in turns], None

    monkeypatch.setattr(vllm, "generate", generate)
    each = Generation([1], "", 9)

    engine.generate([each])

    assert math.isnan(each.log_probs[0])
    assert each.log_probs[1] == -0.5


def test_a_process_with_fewer_sequences_asks_for_as_many_turns_as_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = iter([3, 2, 1, 0])  # sequences that are left in the other process
    monkeypatch.setattr(
        "adapters.trl.vllm_engine.gather_object", lambda counts: [*counts, next(others)]
    )
    engine, vllm = engine_of(lambda prompt: [EOS])
    each, replied = Generation([1], "", 9), list[int]()

    def reply(ended: list[Generation]) -> list[list[int] | None]:
        replied.append(len(ended))
        return [[5] if len(each.turns) == 1 else None]

    engine.generate([each], reply)

    assert [len(prompts) for prompts in vllm.asked] == [3, 2, 1]
    assert vllm.asked[0] == [[1], [FILLER], [FILLER]]
    assert vllm.asked[2] == [[FILLER]]
    assert each.tokens == [EOS, 5, EOS]
    assert replied == [1, 1]
