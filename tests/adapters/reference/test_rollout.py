"""Rollouts of the reference trainer: real models, caches, templates, environments.

Where a test needs the model to say something, or compares ways to compute the same rollouts, only
the choice of tokens is scripted: the forward passes, the log-probabilities and all that follows
from a turn are the real ones.
"""

import json
import math
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
import transformers
from torch import Tensor

from adapters.reference import generation, shared_decoding
from adapters.reference.decoder import Decoder
from adapters.reference.generation import Player, PlaySettings
from adapters.reference.rollout import Ending, Request, Rollout
from adapters.reference.sampling import Sampler
from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import train_tokenizer
from tests.adapters.reference.scripted import Script
from toolgym import Task, TaskSet, ToolEnv, policies, tool
from toolgym.env import safe_text
from toolgym.messages import episode_messages, prompt_messages
from toolgym.rollout import play

pytestmark = pytest.mark.torch

NOTES = "trl-tests/Notes-v0"
MEETING = "reference-tests/Meeting-v0"
END = "<|im_end|>"
SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
    "max_position_embeddings": 8192,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Qwen3": ("Qwen3", {**SHAPE, "head_dim": 16}),
    "Llama": ("Llama", SHAPE),
    "Gemma3": ("Gemma3Text", {**SHAPE, "head_dim": 16, "sliding_window": 24}),
    "GPT2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 2048}),
}


class MeetingEnv(ToolEnv[Task]):
    """Wait for the others."""

    together = threading.Barrier(1)

    def __init__(self, **options: Any) -> None:
        super().__init__(TaskSet([Task(f"m-{i}", f"Meet {i}.") for i in range(4)]), **options)

    def begin(self, task: Task) -> str:
        return task.question

    @tool
    def nap(self) -> str:
        """Take a moment."""
        time.sleep(0.005)
        return "rested"

    @tool
    def meet(self) -> str:
        """Wait until everybody is here."""
        self.together.wait(timeout=120)
        return "met"

    @tool(terminal=True)
    def answer(self, value: int) -> str:
        """Submit the answer.

        Args:
            value: A number.
        """
        return self.submit(value == 1)


if MEETING not in gym.registry:
    gym.register(id=MEETING, entry_point=MeetingEnv)


def call(name: str, **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>{END}"


def sound(number: int) -> list[str]:
    """What the expert says on a note, with a detour of the given length in tool results."""
    detours = [call("count", text="a" * (7 * i)) for i in range(number % 3)]
    return [*detours, call("read", note=f"note-{number}"), call("answer", value=10 + number)]


class ScriptedPlayer(Player):
    """Says for each stream what `script` has under its name, then any token."""

    script: dict[str, list[str]]
    tokenizer: Any

    def _sampler(self, requests: Sequence[Request]) -> Sampler:
        said = ["".join(self.script.get(request.stream, [])) for request in requests]
        ids = [self.tokenizer(text, add_special_tokens=False)["input_ids"] for text in said]
        names = [f"{request.stream}-{request.task_id}" for request in requests]
        settings = self.settings
        return Script(ids, names, settings.temperature, settings.max_tokens, self.model.device)


def random_model(name: str, tokenizer: Any) -> Any:
    family, shape = MODELS[name]
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(tokenizer),
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **shape,
    )
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    return model


@pytest.fixture(scope="module")
def compact_tokenizer() -> Any:
    """The tokenizer of the tiny model, for the notes."""
    expert = policies.ExpertPolicy()
    env = NotesFactory()
    transcripts = []
    for number in range(6):
        play(env, expert, task_id=f"note-{number}")
        transcripts.append(episode_messages(env))
    return train_tokenizer(transcripts, 420)


def NotesFactory() -> Any:  # noqa: N802 - stands for the class in the conftest
    return gym.make(NOTES, disable_env_checker=True).unwrapped


@pytest.fixture(scope="module")
def compact_model(compact_tokenizer: Any) -> Any:
    return build_model(compact_tokenizer, size=TinySize(hidden=32, heads=2, feed_forward=64))


@pytest.fixture
def player(compact_model: Any, compact_tokenizer: Any) -> Any:
    """Makes a scripted player on the notes."""

    def make(script: dict[str, list[str]], **options: Any) -> ScriptedPlayer:
        model = options.pop("model", compact_model)
        tokenizer = options.pop("tokenizer", compact_tokenizer)
        env_id, env_kwargs = options.pop("env_id", NOTES), options.pop("env_kwargs", {})
        settings = PlaySettings(**{"max_tokens": 300, "workers": 1, **options})
        made = ScriptedPlayer(model, tokenizer, env_id, env_kwargs, settings)
        made.script, made.tokenizer = script, tokenizer
        return made

    return make


@pytest.fixture
def drawing(compact_model: Any, compact_tokenizer: Any) -> Player:
    """A player on the notes that draws as the model says."""
    settings = PlaySettings(max_tokens=20, workers=1)
    return Player(compact_model, compact_tokenizer, NOTES, {}, settings)


def requests(numbers: Sequence[int], stream: str = "") -> list[Request]:
    """One rollout of each note; its stream is named after it."""
    return [Request(f"note-{n}", n, f"{stream}{n}") for n in numbers]


def fresh_log_probs(model: Any, rollout: Rollout, temperature: float) -> list[float]:
    """Those of the sampled tokens, from one forward pass over the whole rollout."""
    ids = torch.tensor([rollout.prompt + rollout.completion])
    with torch.no_grad():
        logits = model.train(False)(input_ids=ids).logits[0].float() / temperature
    log_probs = torch.log_softmax(logits, dim=1)
    start = len(rollout.prompt)
    return [
        float(log_probs[start + place - 1, token])
        for place, token in enumerate(rollout.completion)
        if rollout.mask[place]
    ]


def sampled(rollout: Rollout, values: Sequence[Any]) -> list[Any]:
    return [value for value, bit in zip(values, rollout.mask, strict=True) if bit]


@pytest.mark.parametrize(
    ("name", "temperature"),
    [
        ("Qwen3", 0.6),
        pytest.param("Llama", 1.0, marks=pytest.mark.nightly),
        ("Gemma3", 0.6),
        pytest.param("GPT2", 1.0, marks=pytest.mark.nightly),
    ],
)
def test_log_probs_are_those_of_a_fresh_forward_pass(
    name: str, temperature: float, player: Any, compact_tokenizer: Any
) -> None:
    model = random_model(name, compact_tokenizer)
    script = {str(n): sound(n)[: n % 3] for n in range(4)}  # then any token
    playing = player(script, model=model, temperature=temperature, patience=0.3, max_tokens=120)

    rollouts = playing.play(requests(range(4)))

    assert len({len(rollout.turns) for rollout in rollouts}) > 1
    for rollout in rollouts:
        fresh = fresh_log_probs(model, rollout, temperature)
        assert sampled(rollout, rollout.log_probs) == pytest.approx(fresh, abs=2e-4)


def test_the_mask_marks_exactly_what_was_sampled(player: Any, compact_tokenizer: Any) -> None:
    script = {str(n): sound(n) for n in range(6)}

    for number, rollout in enumerate(player(script).play(requests(range(6)))):
        said = compact_tokenizer("".join(sound(number)), add_special_tokens=False)["input_ids"]
        assert sampled(rollout, rollout.completion) == said
        assert [rollout.completion[a:b] for a, b in rollout.turns] == [
            compact_tokenizer(turn, add_special_tokens=False)["input_ids"] for turn in sound(number)
        ]
        inside = {place for a, b in rollout.turns for place in range(a, b)}
        assert [place in inside for place in range(len(rollout.mask))] == list(
            map(bool, rollout.mask)
        )
        unsampled = [p for p, bit in zip(rollout.log_probs, rollout.mask, strict=True) if not bit]
        assert set(unsampled) <= {0.0}


@pytest.mark.parametrize(
    "template",
    [
        "compact",
        "qwen3_training",
        pytest.param("qwen2_5", marks=pytest.mark.nightly),
        pytest.param("qwen3_instruct_2507", marks=pytest.mark.nightly),
    ],
)
def test_the_tokens_are_what_the_template_renders(
    template: str, player: Any, compact_tokenizer: Any, make_tokenizer: Any
) -> None:
    tokenizer = compact_tokenizer if template == "compact" else make_tokenizer(template)
    model = random_model("Llama", tokenizer)
    script = {str(n): ["I wonder." + END, *sound(n)] for n in (0, 3)}
    playing = player(script, model=model, tokenizer=tokenizer, max_tokens=3000)
    playing._envs += [NotesFactory()]

    rollouts = playing.play(requests([0, 3]))

    for rollout, env in zip(rollouts, playing._envs, strict=True):
        rendered = tokenizer.apply_chat_template(
            episode_messages(env), tools=env.tool_schemas(), tokenize=False
        )
        text = tokenizer.decode(rollout.prompt + rollout.completion)
        assert rollout.ending is Ending.ANSWERED
        assert len(rollout.turns) == len(env.episode.turns)
        assert rendered.replace("<think>\n\n</think>\n\n", "").startswith(text)


def test_a_rollout_is_the_same_in_whatever_company(player: Any) -> None:
    script = {str(n): sound(n)[: 1 + n % 2] for n in range(4)}  # ends at random
    short = {"max_tokens": 60}
    together = player(script, patience=0.2, **short).play(requests(range(4)))
    backwards = player(script, **short).play(requests([3, 2, 1, 0]))[::-1]
    alone = player(script, **short).play(requests([1]))
    in_twos = player(script, at_once=2, workers=3, **short).play(requests(range(4)))

    assert_same(alone[0], together[1])
    for others in (backwards, in_twos):
        for one, other in zip(together, others, strict=True):
            assert_same(one, other)


def assert_same(one: Rollout, other: Rollout) -> None:
    """The same tokens and rewards, with log-probabilities that are the same up to rounding."""
    assert (one.completion, one.mask, one.turns) == (other.completion, other.mask, other.turns)
    assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
    assert (one.ending, one.reward) == (other.ending, other.reward)


def test_what_is_drawn_depends_on_the_stream(drawing: Player) -> None:
    one, same, other = (drawing.play(requests([1], stream))[0] for stream in ("a", "a", "b"))

    assert one.completion == same.completion
    assert one.log_probs == same.log_probs
    assert one.completion != other.completion


def test_what_is_drawn_depends_on_no_other_rollout() -> None:
    """Each row of logits has its own numbers, wherever in a batch it stands."""
    logits = 3 * torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    names = [str(row) for row in range(6)]
    whole = Sampler(names, 1.0, 9, torch.device("cpu"))
    together, _ = whole.sample(logits, range(6), [8, 0, 1, 1, 3, 5])
    order = [4, 0, 5]
    few = Sampler([names[row] for row in order], 1.0, 20, torch.device("cpu"))

    found, _ = few.sample(logits[order], range(3), [3, 8, 5])

    assert found == [together[row] for row in order]


def test_members_of_a_group_differ_and_share_a_prompt(drawing: Player) -> None:
    group = [Request("note-2", 0, str(member)) for member in range(4)]

    rollouts = drawing.play(group)

    assert len({tuple(rollout.prompt) for rollout in rollouts}) == 1
    assert len({tuple(rollout.completion) for rollout in rollouts}) == 4


def test_no_token_is_read_twice(player: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    feed = Decoder.feed

    def counting(self: Decoder, first: int, tokens: Any, *more: Any) -> Tensor:
        read.append(sum(map(len, tokens)))
        return feed(self, first, tokens, *more)

    monkeypatch.setattr(Decoder, "feed", counting)
    script = {f"{n}{member}": sound(n) for n in range(3) for member in range(4)}
    group = [Request(f"note-{n}", n, f"{n}{m}") for n in range(3) for m in range(4)]
    rollouts = player(script).play(group)

    prompts = sum(len(rollouts[4 * n].prompt) - 1 for n in range(3))
    last_of_prompt, last_of_all = len(rollouts), len(rollouts)
    completions = sum(len(rollout.completion) for rollout in rollouts)
    assert sum(read) == prompts + last_of_prompt + completions - last_of_all


def test_prompts_are_read_in_passes_of_bounded_size(
    player: Any, compact_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[int, int]] = []
    feed = Decoder.feed

    def counting(self: Decoder, first: int, tokens: Any, *more: Any) -> Tensor:
        read.append((first, len(tokens) * max(map(len, tokens))))
        return feed(self, first, tokens, *more)

    monkeypatch.setattr(Decoder, "feed", counting)
    model = random_model("Llama", compact_tokenizer).train(False)
    asked = [Request(f"note-{n}", n, str(n)) for n in range(5)]
    whole = player({}, model=model, max_tokens=12).play(asked)
    assert [first for first, _ in read] == [0] * len(read)
    together, read[:] = read[0][1], []
    monkeypatch.setattr(generation, "TOKENS_READ", together // 5 * 2)

    parts = player({}, model=model, max_tokens=12).play(asked)

    assert [first for first, _ in read[:3]] == [0, 2, 4]
    assert max(size for _, size in read) <= together // 5 * 2
    monkeypatch.setattr(generation, "TOKENS_READ", 1)  # a prompt is read whole all the same
    each = player({}, model=model, max_tokens=12).play(asked)
    for others in (parts, each):
        for one, other in zip(whole, others, strict=True):
            assert_same(one, other)


def test_what_all_prompts_begin_with_is_read_once(
    player: Any, compact_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    feed = Decoder.feed

    def counting(self: Decoder, first: int, tokens: Any, *more: Any) -> Tensor:
        read.append(sum(map(len, tokens)))
        return feed(self, first, tokens, *more)

    monkeypatch.setattr(Decoder, "feed", counting)
    model = random_model("Llama", compact_tokenizer)
    numbers = [n for n in range(3) for _ in range(2)]
    group = [Request(f"note-{n}", n, f"{n}-{place}") for place, n in enumerate(numbers)]
    before = player({}, model=model, max_tokens=12).play(group)
    whole, read[:] = read[0], []
    monkeypatch.setattr(generation, "LEAST", 3)

    rollouts = player({}, model=model, max_tokens=12).play(group)

    common = read[0]
    assert common >= 3
    assert common + read[1] == whole - 2 * common
    for rollout, other in zip(rollouts, before, strict=True):
        assert rollout.completion == other.completion
        fresh = fresh_log_probs(model, rollout, 1.0)
        assert sampled(rollout, rollout.log_probs) == pytest.approx(fresh, abs=2e-4)


def test_a_large_vocabulary_is_drawn_from_as_a_small_one_is() -> None:
    draw = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(40, 5003, generator=draw)
    logits[:, ::3] = -math.inf
    names = [str(row) for row in range(40)]
    sampler = Sampler(names, 0.7, 25, torch.device("cpu"))
    for position in range(25):
        tokens, log_probs = sampler.sample(logits, range(40), [position] * 40)

        exact = torch.log_softmax(logits / 0.7, dim=1)
        sums = exact.exp().cumsum(dim=1, dtype=torch.float64)
        points = sampler._uniforms[:, position] * sums[:, -1]
        assert tokens == torch.searchsorted(sums, points[:, None], right=True)[:, 0].tolist()
        assert log_probs == [float(exact[row, token]) for row, token in enumerate(tokens)]
        assert all(math.isfinite(each) for each in log_probs)


def test_turn_rewards_sum_to_the_reward(player: Any) -> None:
    script = {"0": sound(0), "1": sound(1)[:-1], "2": ["What?" + END], "3": []}

    for rollout in player(script, max_tokens=90).play(requests(range(4))):
        assert len(rollout.turn_rewards) == len(rollout.turns)
        assert math.fsum(rollout.turn_rewards) == pytest.approx(rollout.reward, abs=1e-12)


@pytest.mark.parametrize(
    ("said", "options", "ending", "truncated"),
    [
        (sound(0), {}, Ending.ANSWERED, False),
        ([*sound(0)[:1], "What? " * 60], {"max_tokens": 60}, Ending.CUT_OFF, True),
        ([], {"max_tokens": 5}, Ending.CUT_OFF, True),
        ([call("count", text="a" * 2), call("nope")], {"max_tokens": 62}, Ending.NO_ROOM, True),
        ([call("nope")] * 3, {"env_kwargs": {"step_limit": 3}}, Ending.OUT_OF_CALLS, True),
    ],
    ids=["answered", "cut off later", "cut off at once", "no room", "out of calls"],
)
def test_truncation_is_told_from_an_answer(
    said: list[str], options: dict[str, Any], ending: Ending, truncated: bool, player: Any
) -> None:
    (rollout,) = player({"0": said}, **options).play(requests([0]))

    assert rollout.ending is ending
    assert rollout.truncated is truncated
    assert len(rollout.completion) <= options.get("max_tokens", 300)
    assert rollout.episode is not None
    assert rollout.episode.answered is not truncated


def test_a_rollout_never_outgrows_its_model(player: Any, compact_tokenizer: Any) -> None:
    shape = dict(MODELS["GPT2"][1], n_positions=80)
    config = transformers.GPT2Config(vocab_size=len(compact_tokenizer), **shape)
    config.eos_token_id = config.bos_token_id = compact_tokenizer.eos_token_id
    model = transformers.GPT2LMHeadModel(config)
    script = {"0": [call("count", text="a"), *sound(0)]}

    rollouts = player(script, model=model).play(requests(range(3)))

    assert all(len(rollout.prompt + rollout.completion) <= 80 for rollout in rollouts)
    assert all(rollout.is_unfinished for rollout in rollouts)


def test_a_turn_without_a_word_is_answered_and_the_rollout_goes_on(
    player: Any, compact_tokenizer: Any
) -> None:
    (rollout,) = player({"0": [END, *sound(0)]}).play(requests([0]))

    assert rollout.episode is not None
    assert rollout.episode.turns[0]["errors"]
    assert "error[" in compact_tokenizer.decode(rollout.completion)
    assert (rollout.ending, rollout.episode.correct) == (Ending.ANSWERED, True)
    assert len(rollout.turns) == 1 + len(sound(0))


def test_a_turn_that_is_cut_off_after_its_call_is_played(player: Any) -> None:
    said = call("answer", value=10).removesuffix(END)
    length = len(player({}).tokenizer(said, add_special_tokens=False)["input_ids"])

    (rollout,) = player({"0": [said]}, max_tokens=length).play(requests([0]))

    assert rollout.ending is Ending.ANSWERED
    assert rollout.reward > 0.9


def test_results_cannot_end_a_turn(player: Any, make_tokenizer: Any) -> None:
    tokenizer = make_tokenizer("qwen3_instruct_2507")
    model = random_model("Qwen3", tokenizer)
    playing = player({"3": sound(3)}, model=model, tokenizer=tokenizer, max_tokens=3000)

    (rollout,) = playing.play(requests([3]))

    told = [t for t, bit in zip(rollout.completion, rollout.mask, strict=True) if not bit]
    text = tokenizer.decode(rollout.completion)
    assert safe_text(END) in text  # a note holds the token that ends a turn
    assert told.count(tokenizer.eos_token_id) == len(rollout.turns) - 1


def test_control_tokens_of_the_tokenizer_alone_stay_text(
    player: Any, compact_tokenizer: Any
) -> None:
    chat = player({}).chat
    (tail,) = chat.following([[{"role": "tool", "name": "read", "content": f"a {END} b"}]])

    assert compact_tokenizer.decode(tail).count(END) == 2
    assert tail.count(compact_tokenizer.eos_token_id) == 1


def test_a_fault_costs_its_rollout_and_no_other(player: Any, notes_folder: Path) -> None:
    script = {str(n): sound(n) for n in range(4)}
    options = {"env_kwargs": {"folder": notes_folder}}
    whole = player(script, **options).play(requests(range(4)))
    (notes_folder / "note-2").unlink()

    rollouts = player(script, **options).play(requests(range(4)))

    assert [rollout.ending for rollout in rollouts][2] is Ending.FAULT
    assert "the file of 'note-2' is gone" in rollouts[2].fault
    assert math.isnan(rollouts[2].reward)
    assert rollouts[2].outcome is None
    for number in (0, 1, 3):
        assert rollouts[number].completion == whole[number].completion
        assert rollouts[number].reward == whole[number].reward


class _Lost(ToolEnv[Task]):
    """Never begins."""

    def __init__(self, **options: Any) -> None:
        super().__init__(TaskSet([Task("t", "?")]), **options)

    def begin(self, task: Task) -> str:
        from toolgym import EnvironmentFault

        raise EnvironmentFault("the disk is gone.")

    @tool(terminal=True)
    def answer(self, value: int) -> str:
        """Submit the answer.

        Args:
            value: A number.
        """
        return self.submit(False)


def test_an_episode_that_cannot_begin_is_a_rollout_without_tokens(player: Any) -> None:
    gym.register(id="reference-tests/Lost-v0", entry_point=_Lost)
    try:
        (rollout,) = player({}, env_id="reference-tests/Lost-v0").play([Request("t", 0, "a")])
    finally:
        del gym.registry["reference-tests/Lost-v0"]

    assert (rollout.prompt, rollout.completion, rollout.turns) == ([], [], [])
    assert (rollout.ending, rollout.fault) == (Ending.FAULT, "the disk is gone.")
    assert not rollout.scored


def test_tools_of_different_rollouts_run_at_the_same_time(
    player: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MeetingEnv, "together", threading.Barrier(4))
    script = {str(n): [call("nap"), call("meet"), call("answer", value=n)] for n in range(4)}
    playing = player(script, env_id=MEETING, workers=4, patience=1.0)

    rollouts = playing.play([Request(f"m-{n}", n, str(n)) for n in range(4)])

    assert [len(rollout.turns) for rollout in rollouts] == [3, 3, 3, 3]
    assert [r.episode.correct for r in rollouts if r.episode] == [False, True, False, False]


def test_playing_leaves_the_model_as_it_was(player: Any, compact_model: Any) -> None:
    state = torch.random.get_rng_state()
    for training in (True, False):
        compact_model.train(training)
        player({}, max_tokens=8).play(requests([0]))
        assert compact_model.training is training
    assert torch.equal(torch.random.get_rng_state(), state)


def test_tokens_are_drawn_by_their_probabilities() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -30.0, 0.5]])
    sampler = Sampler(["a"], 2.0, 4000, torch.device("cpu"))
    expected = torch.softmax(logits[0] / 2.0, dim=0)

    tokens, log_probs = sampler.sample(logits.expand(4000, 5), [0] * 4000, range(4000))

    counts = torch.bincount(torch.tensor(tokens), minlength=5)
    spread = (expected * (1 - expected) / 4000).sqrt()
    assert ((counts / 4000 - expected).abs() <= 4 * spread + 1e-9).all()
    for token, log_prob in zip(tokens[:20], log_probs, strict=False):
        assert log_prob == pytest.approx(math.log(expected[token]), abs=1e-6)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_the_prompt_is_that_of_evaluation(player: Any, compact_tokenizer: Any) -> None:
    playing = player({}, max_tokens=4)
    (rollout,) = playing.play(requests([4]))
    env = playing._envs[0]

    rendered = compact_tokenizer.apply_chat_template(
        prompt_messages(env), tools=env.tool_schemas(), add_generation_prompt=True, tokenize=False
    )

    assert compact_tokenizer.decode(rollout.prompt) == rendered


def test_rollouts_that_read_their_beginnings_once_are_the_same(
    player: Any, compact_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_model("Llama", compact_tokenizer).train(False)
    asked = [Request(f"note-{n}", n, f"{n}-{i}") for n in range(4) for i in range(3)]
    plain = player({}, model=model, max_tokens=30).play(asked)
    attended = list[int]()
    attend = shared_decoding.Rows.attend

    def noted(rows: Any, *parts: Any) -> Tensor:
        attended.append(len(rows.places))
        return attend(rows, *parts)

    monkeypatch.setattr(shared_decoding, "_SMALL", 0)
    monkeypatch.setattr(shared_decoding, "LEAST", 8)
    monkeypatch.setattr(shared_decoding.Rows, "attend", noted)

    shared = player({}, model=model, max_tokens=30).play(asked)

    assert max(attended) == 3, "the rollouts of a note"
    for one, other in zip(shared, plain, strict=True):
        assert_same(one, other)
