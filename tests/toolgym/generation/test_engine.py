"""The generation engine on real models of random weights, with each of its caches."""

import logging
import random
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.sweeps import sweep
from tests.toolgym.generation.random_models import FAMILIES, plain_log_probs, random_model
from toolgym.generation import Engine, Generation, engine, steps
from toolgym.generation.decoder import Decoder

pytestmark = pytest.mark.torch

STOP = frozenset(range(0, 300, 12))
CACHES = ("growing", "static")


def made(count: int = 12, seed: int = 0) -> list[Generation]:
    """Generations with prompts of 1 to 19 tokens, each in two, and different room."""
    draw = random.Random(seed)
    prompts = [[draw.randrange(300) for _ in range(draw.randrange(1, 20))] for _ in range(count)]
    return [
        Generation(list(prompt), f"{place}-{member}", draw.randrange(1, 45))
        for place, prompt in enumerate(prompts)
        for member in range(2)
    ]


def answer(over: list[Generation]) -> list[list[int] | None]:
    """Up to three answers of 0, 3 or 6 tokens, as long as there is room for another turn."""
    answers: list[list[int] | None] = []
    for each in over:
        tail = [7] * (len(each.turns) * 3 % 9)
        has_room = len(each.tokens) + len(tail) < min(each.max_tokens, 64 - len(each.prompt))
        answers.append(tail if has_room and len(each.turns) < 4 else None)
    return answers


def engine_with(cache: Any, model: Any, stop: Any = STOP, **options: Any) -> Engine:
    made = Engine(model, stop=stop, **options)
    made._cache = cache
    return made


def results(generations: Sequence[Generation]) -> list[Any]:
    return [(each.tokens, each.mask, each.turns) for each in generations]


@pytest.mark.parametrize("family", sweep(FAMILIES, ["Qwen3", "Gemma3Text", "GptOss", "OPT"]))
@pytest.mark.parametrize("cache", CACHES)
def test_log_probabilities_are_those_of_plain_forward_passes(family: str, cache: str) -> None:
    model, generations = random_model(family), made()

    engine_with(cache, model).generate(generations, answer, temperature=0.8, turn_tokens=11)

    assert max(len(each.turns) for each in generations) > 2
    for each in generations:
        assert each.log_probs == pytest.approx(plain_log_probs(model, each, 0.8), abs=1e-4)


@pytest.mark.parametrize("cache", CACHES)
def test_turns_end_with_a_stop_token_or_where_no_more_tokens_may_follow(cache: str) -> None:
    generations = made()
    engine_with(cache, random_model()).generate(generations, answer, turn_tokens=11)

    for each in generations:
        assert 0 < len(each.tokens) <= each.max_tokens
        assert len(each.tokens) == len(each.mask) == len(each.log_probs)
        sampled = {place for begin, end in each.turns for place in range(begin, end)}
        assert [place in sampled for place in range(len(each.mask))] == [*map(bool, each.mask)]
        for begin, end in each.turns:
            turn = each.tokens[begin:end]
            assert not STOP & {*turn[:-1]}
            assert turn[-1] in STOP or len(turn) == 11 or end == each.max_tokens


@pytest.mark.integration
def test_a_generation_is_the_same_in_whatever_batch_and_cache() -> None:
    model = random_model()
    whole = made(3)
    engine_with("growing", model).generate(whole, answer, turn_tokens=11)

    for cache in CACHES:
        for slots in (1, 5):
            others = made(3)
            random.Random(slots).shuffle(shuffled := [*others])
            engine_with(cache, model, slots=slots).generate(shuffled, answer, turn_tokens=11)
            assert results(others) == results(whole)


def test_other_streams_give_other_tokens() -> None:
    one, same, other = (Generation([5, 6], stream, 20) for stream in ("a", "a", "b"))
    engine_with("growing", random_model(), ()).generate([one, same, other])

    assert one.tokens == same.tokens
    assert one.tokens != other.tokens
    assert one.turns == [(0, 20)]


@pytest.mark.parametrize("cache", CACHES)
def test_temperature_zero_takes_the_likeliest_tokens(cache: str) -> None:
    model, generations = random_model(), made(4)
    engine_with(cache, model).generate(generations, answer, temperature=0, turn_tokens=11)

    for each in generations:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([each.prompt + each.tokens])).logits[0]
        likeliest = logits.argmax(1).tolist()[len(each.prompt) - 1 : -1]
        expected = [
            a if m else t for a, t, m in zip(likeliest, each.tokens, each.mask, strict=True)
        ]
        assert each.tokens == expected
        assert set(each.log_probs) == {0.0}


def test_a_finished_sequence_makes_room_for_a_waiting_one(monkeypatch: Any) -> None:
    rows: list[int] = []
    run = steps.Steps.run
    monkeypatch.setattr(
        steps.Steps, "run", lambda self, part, *a: rows.append(len(part)) or run(self, part, *a)
    )
    generations = [Generation([n], str(n), 2 if n else 20) for n in range(10)]
    engine_with("growing", random_model(), (), slots=2).generate(generations)

    assert [len(each.tokens) for each in generations] == [20] + [2] * 9
    assert max(rows) == 2
    assert len(rows) < 25  # 20 steps of the long one, in whose company the others take their turns


def test_each_distinct_prompt_is_read_once(monkeypatch: Any) -> None:
    read: list[int] = []
    feed = Decoder.feed

    def counting(self: Decoder, first: int, texts: Any, starts: Any) -> Any:
        read.append(sum(map(len, texts)))
        return feed(self, first, texts, starts)

    monkeypatch.setattr(Decoder, "feed", counting)
    monkeypatch.setattr(engine, "_COMMON", 5)
    tools = list(range(20, 30))
    prompts = [[*tools, 1, 2, 3], [*tools, 4, 5], [*tools, 6]]
    generations = [Generation(list(p), f"{n}", 3) for p in prompts for n in range(4)]
    model = random_model()
    engine_with("growing", model, ()).generate(generations)

    assert sum(read) == 10 + 2 + 1 + 1  # common, then rests but for the last token, or that token
    for each in generations:
        assert each.log_probs == pytest.approx(plain_log_probs(model, each), abs=1e-4)


@pytest.mark.parametrize("cache", CACHES)
def test_a_prompt_without_room_gets_no_tokens_and_no_reply(cache: str) -> None:
    full, one, none, least = (
        Generation([5] * length, "a", room) for length, room in ((64, 9), (63, 9), (3, 0), (1, 1))
    )
    asked: list[Generation] = []

    def reply(over: list[Generation]) -> list[list[int] | None]:
        asked.extend(over)
        return [None] * len(over)

    engine_with(cache, random_model()).generate([full, one, none, least], reply)

    assert [len(each.tokens) for each in (full, one, none, least)] == [0, 1, 0, 1]
    assert {*map(id, asked)} == {id(one), id(least)}


def test_nothing_to_generate_asks_the_model_nothing() -> None:
    Engine(None, stop=()).generate([])  # type: ignore[arg-type]


def test_an_empty_prompt_and_an_answer_without_room_are_refused() -> None:
    made = engine_with("growing", random_model(), ())
    with pytest.raises(ValueError, match="at least one token"):
        made.generate([Generation([], "a", 3)])
    with pytest.raises(ValueError, match="an answer of 7 tokens leaves no room"):
        made.generate([Generation([1], "a", 9)], lambda over: [[4] * 7], turn_tokens=2)


@pytest.mark.parametrize("cache", CACHES)
def test_an_engine_goes_on_after_a_reply_that_failed(cache: str) -> None:
    model = random_model().train(True)
    used = engine_with(cache, model)
    with pytest.raises(ZeroDivisionError, match="division"):
        used.generate(made(3), lambda over: [1 // 0])  # type: ignore[list-item]
    again, expected = made(3), made(3)

    used.generate(again, answer)
    engine_with(cache, model).generate(expected, answer)

    assert results(again) == results(expected)
    assert model.training


def test_a_static_cache_is_kept_and_allocated_anew_where_it_is_too_small() -> None:
    used = engine_with("static", random_model(max_position_embeddings=512))
    kept = []
    for length, count in ((20, 2), (30, 2), (30, 3), (200, 2)):
        used.generate([Generation([5] * length, str(n), 8) for n in range(count)])
        kept.append(used._kept)

    assert kept[0] is kept[1] is not kept[2] is not kept[3]
    assert kept[3] is not None
    assert (kept[3].slots, kept[3].columns) == (3, 256)


def test_the_static_cache_is_taken_after_a_trial() -> None:
    used = Engine(random_model(), stop=())
    with torch.inference_mode():
        used._cache = "growing"
        used._try_static_cache()

    assert used._cache == "static"


@pytest.mark.parametrize("is_wrong", [True, False], ids=["wrong", "raises"])
def test_a_static_cache_that_fails_its_trial_is_not_taken(
    is_wrong: bool, monkeypatch: Any, caplog: Any
) -> None:
    run = steps.Steps.run

    def broken(self: steps.Steps, rows: Any, *more: Any) -> Any:
        if self.max_steps > 1 and not is_wrong:
            raise RuntimeError("no kernel image\nand a long report")
        sampled = run(self, rows, *more)
        return [(t, [p - 0.1 for p in ps]) if self.max_steps > 1 else (t, ps) for t, ps in sampled]

    monkeypatch.setattr(steps.Steps, "run", broken)
    used, generations = Engine(random_model(), stop=STOP), made(3)
    with caplog.at_level(logging.WARNING), torch.inference_mode():
        used._cache = "growing"
        used._try_static_cache()
    used.generate(generations, answer)

    assert used._cache == "growing"
    (said,) = [record.message for record in caplog.records]
    assert said.startswith("Generation uses no static cache and no CUDA graphs: ")
    assert ("off by 0.1" if is_wrong else "RuntimeError: no kernel image.") in said
    for each in generations:
        assert each.log_probs == pytest.approx(plain_log_probs(used.model, each), abs=1e-4)


class Recorded:
    """A stand-in for a CUDA graph."""

    def __init__(self, step: Any) -> None:
        self.replay = step


@pytest.fixture
def recording(monkeypatch: Any) -> list[Any]:
    """The recorded steps of engines with a static cache, whatever the device."""
    recorded: list[Any] = []

    def record(self: steps.Steps, step: Any) -> Recorded:
        step()  # as before a graph is recorded; it must change nothing
        recorded.append(step)
        return Recorded(step)

    monkeypatch.setattr(steps.Steps, "_recorded", record)
    init = steps.Steps.__init__
    monkeypatch.setattr(
        steps.Steps,
        "__init__",
        lambda self, decoder, slots, most, stop, records: init(
            self, decoder, slots, most, stop, records=most > 1
        ),
    )
    return recorded


@pytest.mark.integration
def test_a_step_is_recorded_once_for_each_shape_and_again_for_other_weights(
    recording: list[Any],
) -> None:
    model = random_model()
    used = engine_with("static", model)
    expected, found, after = made(), made(), made()
    used.generate(found, answer, turn_tokens=11)
    shapes = len(recording)
    used.generate(after, answer, turn_tokens=11)
    assert 1 < shapes == len(recording)
    for parameter in model.parameters():
        parameter.data.mul_(1)
    used.generate(made(), answer, turn_tokens=11)
    assert len(recording) == shapes
    for parameter in model.parameters():
        parameter.data = parameter.data.clone()
    used.generate(made(), answer, turn_tokens=11)
    assert len(recording) == 2 * shapes
    used.release()
    used.generate(made(), answer, turn_tokens=11)
    assert len(recording) == 3 * shapes

    engine_with("growing", model).generate(expected, answer, turn_tokens=11)
    assert results(found) == results(after) == results(expected)


@pytest.mark.integration
def test_a_step_is_recorded_again_where_an_adapter_computes_in_another_way(
    recording: list[Any],
) -> None:
    peft = pytest.importorskip("peft", reason="needs the extra `train`")
    model = random_model()
    config = peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False)
    inside = peft.get_peft_model(model, config)
    used = engine_with("static", model)

    def recorded() -> int:
        before = len(recording)
        used.generate(made(3), answer, turn_tokens=11)
        return len(recording) - before

    assert recorded() > 0 == recorded()
    inside.merge_adapter()
    assert recorded() > 0 == recorded()
    inside.unmerge_adapter()
    with inside.disable_adapter():
        assert recorded() > 0 == recorded()
    assert recorded() > 0


def test_steps_that_cannot_be_recorded_run_without_graphs(
    recording: list[Any], monkeypatch: Any, caplog: Any
) -> None:
    def fails(self: steps.Steps, step: Any) -> None:
        step()
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    monkeypatch.setattr(steps.Steps, "_recorded", fails)
    model, found, expected = random_model(), made(), made()
    with caplog.at_level(logging.WARNING):
        engine_with("static", model).generate(found, answer, turn_tokens=11)
    engine_with("growing", model).generate(expected, answer, turn_tokens=11)

    assert results(found) == results(expected)
    (said,) = [record.message for record in caplog.records]
    assert said.endswith("slower: operation not permitted when stream is capturing.")


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("Bloom", {"n_layer": 2, "n_head": 4}),
        pytest.param("Qwen3Next", {"num_hidden_layers": 4}, marks=pytest.mark.nightly),
    ],
)
def test_a_model_with_another_memory_generates_one_sequence_at_a_time(
    family: str, options: dict[str, Any], caplog: Any
) -> None:
    model = random_model(family, **options, attn_implementation="eager")
    generations = made(4)
    used = Engine(model, stop=STOP, slots=5)
    with caplog.at_level(logging.WARNING):
        used.generate(generations, answer, temperature=0.8, turn_tokens=11)

    assert used._cache == "own"
    assert "One sequence is generated at a time" in caplog.text
    for each in generations:
        assert each.log_probs == pytest.approx(plain_log_probs(model, each, 0.8), abs=1e-4)


@pytest.mark.parametrize(
    "family", sweep([name for name in FAMILIES if name != "GptOss"], ["Llama", "Gemma2"])
)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_step_mixes_no_devices_and_waits_for_no_value(family: str, temperature: float) -> None:
    """On a device that only exists for those who look where tensors are, and without values."""
    with FakeTensorMode():
        with torch.device("lazy:0"):
            model = random_model(family)
        decoder = Decoder(model, 4, 129)
        decoder.feed(0, [[1, 2, 3], [4, 5]], [0, 0])
        decoder.cache.arrange([0, 1, 0], 3)
        made = steps.Steps(decoder, 4, 8, [1, 2], records=False)
        for _ in range(2):
            made._step(4, 128, temperature)

    assert str(made._tokens.device) == "lazy:0"
