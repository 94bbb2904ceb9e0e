"""What becomes of a model before it is trained, and where tensors are while it is."""

import copy
import gc
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode

from adapters.reference import learner
from adapters.reference.checkpoint import Checkpoints
from adapters.reference.config import ReferenceConfig, reference_config
from adapters.reference.decoder import Decoder, check_model
from adapters.reference.generation import Player, PlaySettings
from adapters.reference.losses import Totals, loss_config, policy_loss
from adapters.reference.optimizer import Optimizer, make_ready
from adapters.reference.rollout import Request
from adapters.training.models.output_layer import in_pieces
from toolgym import ConfigurationError, Task, TaskSet, ToolEnv, tool
from toolgym.generation import context_length

pytestmark = pytest.mark.torch

DICE = "reference-tests/Dice-v0"
SHAPE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}


def random_model(family: str = "Llama", attention: str = "sdpa", **options: Any) -> Any:
    config = getattr(transformers, f"{family}Config")(**{**SHAPE, **options})
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)


def settings(**options: Any) -> ReferenceConfig:
    return reference_config({"learning_rate": 1e-3, **options})


def test_half_precision_leaves_positions_exact(tmp_path: Path) -> None:
    """Rounded frequencies would be another model than the one that is loaded from a checkpoint."""
    model = random_model("Qwen3", head_dim=32, initializer_range=0.2, max_position_embeddings=1024)
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, dtype=torch.bfloat16).train(False)
    ids = torch.randint(300, (1, 900), generator=torch.Generator().manual_seed(0))

    make_ready(model, settings(dtype="bfloat16"))

    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert {n: b.dtype for n, b in model.named_buffers()} == {
        n: b.dtype for n, b in loaded.named_buffers()
    }
    with torch.no_grad():
        assert torch.equal(model(input_ids=ids).logits, loaded(input_ids=ids).logits)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("Llama", {"attention_dropout": 0.3}),
        ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
        ("OPT", {"ffn_dim": 64, "word_embed_proj_dim": 64, "dropout": 0.3, "layerdrop": 0.5}),
        pytest.param(
            "Starcoder2",
            {"residual_dropout": 0.3, "embedding_dropout": 0.3},
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "BioGpt", {"hidden_dropout_prob": 0.3, "layerdrop": 0.5}, marks=pytest.mark.nightly
        ),
    ],
)
def test_nothing_is_drawn_while_learning(family: str, options: dict[str, Any]) -> None:
    model = random_model(family, **options)
    ids = torch.arange(3, 40)[None]

    make_ready(model, settings(gradient_checkpointing=True))

    with torch.no_grad():
        learning = model(input_ids=ids, use_cache=False).logits
        assert model.training
        playing = model.train(False)(input_ids=ids, use_cache=False).logits
    torch.testing.assert_close(learning, playing)


def test_dropout_that_cannot_be_turned_off_is_refused() -> None:
    model = random_model("Falcon", hidden_dropout=0.3, attention_dropout=0.3)
    make_ready(copy.deepcopy(model), settings())  # in evaluation mode there is none

    with pytest.raises(ConfigurationError, match="load the model with every dropout"):
        make_ready(model, settings(gradient_checkpointing=True))


def test_a_wrong_position_is_found_in_half_precision_too() -> None:
    """What it changes is less than what bfloat16 rounds away."""
    model = random_model(hidden_size=256, num_hidden_layers=4).to(torch.bfloat16)
    own = [parameter.data_ptr() for parameter in model.parameters()]

    def shift(module: Any, args: Any, given: dict[str, Any]) -> Any:
        if "position_ids" in given:  # results of tools are read one place too far behind
            given["position_ids"] = given["position_ids"] + (given["position_ids"] > 8)
        return args, given

    check_model(model)
    assert [parameter.data_ptr() for parameter in model.parameters()] == own
    model.register_forward_pre_hook(shift, with_kwargs=True)

    with pytest.raises(ConfigurationError, match="of their spread"):
        check_model(model)


@pytest.mark.nightly
def test_experts_that_rounding_chooses_are_no_reason_to_refuse() -> None:
    options = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    model = random_model(
        "Qwen3Moe", head_dim=8, num_hidden_layers=12, initializer_range=0.3, **options
    )

    check_model(model.to(torch.bfloat16))


def test_a_model_with_adapters_is_sent_elsewhere() -> None:
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(random_model(), peft.LoraConfig(target_modules=["q_proj"]))

    with pytest.raises(ConfigurationError, match="merge_and_unload"):
        check_model(model)


def test_no_rollout_outgrows_the_length_that_a_model_reads_in_one_way() -> None:
    rope = {"rope_theta": 1e4, "short_factor": [1.0] * 8, "long_factor": [4.0] * 8}
    lengths = {"max_position_embeddings": 256, "original_max_position_embeddings": 32}

    model = random_model("Phi3", rope_parameters={"rope_type": "longrope", **rope}, **lengths)

    assert context_length(model) == 32
    assert context_length(random_model(max_position_embeddings=256)) == 256


def test_keys_and_values_are_given_back_when_nobody_plays_any_more() -> None:
    """Without waiting for Python to look for cycles: an update needs the memory."""
    gc.disable()
    try:
        decoder = Decoder(random_model().train(False), 2)
        decoder.feed(0, [[1, 2], [3]], [0, 0])
        kept = weakref.ref(decoder.cache), weakref.ref(decoder.cache.layers[0])
        del decoder
        assert [place() for place in kept] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("Llama", {"tie_word_embeddings": True}),
        ("Gemma2", {"head_dim": 16, "final_logit_softcapping": 3.0}),
        ("Cohere", {"logit_scale": 0.3}),
        ("Granite", {"logits_scaling": 2.0}),
        ("OPT", {"ffn_dim": 64, "word_embed_proj_dim": 32}),
        pytest.param(
            "Qwen3Moe",
            {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_head_in_pieces_computes_what_it_computes_at_once(
    family: str, options: dict[str, Any]
) -> None:
    attention = "eager" if family == "Gemma2" else "sdpa"
    model = random_model(family, attention, **options).train(False)
    model = model if family == "Qwen3Moe" else model.double()
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(3, 300, (3, 30), generator=draw)
    places = torch.rand(3, 30, generator=draw) < 0.5
    places[:, -1] = False
    targets = ids.roll(-1, dims=1)[places]
    found = []
    for at_once in (10**9, 300 * 7):
        compute = partial(learner._log_probs_and_entropies, temperature=0.6, entropy_learns=True)
        log_probs, entropy = in_pieces(model, places, targets, compute, at_once, input_ids=ids)
        (log_probs.sum() + 0.1 * (entropy**2).sum()).backward()
        grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        found.append((log_probs.detach(), entropy.detach(), grads))
        model.zero_grad()

    for one, other in zip(*found, strict=True):
        near = (
            {"atol": 1e-4, "rtol": 1e-4} if family == "Qwen3Moe" else {"atol": 1e-12, "rtol": 1e-9}
        )
        torch.testing.assert_close(one, other, **near)


def test_a_float32_run_goes_on_in_half_precision_from_where_it_was() -> None:
    exact, coarse = (random_model() for _ in range(2))
    optimizer = Optimizer(exact, settings())
    for parameter in exact.parameters():
        parameter.sum().backward()
    optimizer.step(0.1, optimizer.gradient()[0])
    make_ready(coarse, settings(dtype="bfloat16"))
    again = Optimizer(coarse, settings())

    coarse.load_state_dict(exact.state_dict())
    again.load_state_dict(optimizer.state_dict())

    for one, other in zip(exact.parameters(), coarse.parameters(), strict=True):
        assert torch.equal(one.to(torch.bfloat16), other)


def test_the_latest_sound_checkpoint_outlives_those_that_came_after(
    tmp_path: Path, tokenizer: Any
) -> None:
    checkpoints, model = Checkpoints(tmp_path, keep=2), random_model()

    kept = []
    for step in range(0, 50, 10):
        checkpoints.save(step, model, tokenizer, {}, {}, sound=range(min(step, 15)))
        kept.append(checkpoints.steps())

    assert kept == [[0], [0, 10], [10, 20], [10, 20, 30], [10, 30, 40]]


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path, tokenizer: Any) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save(3, random_model(), tokenizer, {}, {})

    with pytest.raises(ConfigurationError, match="another model than the one that is trained"):
        checkpoints.load_weights(3, random_model(hidden_size=32))


class DiceEnv(ToolEnv[Task]):
    """Throws dice."""

    def __init__(self, **options: Any) -> None:
        super().__init__(TaskSet([Task(f"t-{i}", "Throw.") for i in range(3)]), **options)

    def begin(self, task: Task) -> str:
        return f"You have thrown {self.np_random.integers(10**9)}."

    @tool(terminal=True)
    def answer(self, value: int) -> str:
        """Submit the answer.

        Args:
            value: A number.
        """
        return self.submit(value == 1)


if DICE not in gym.registry:
    gym.register(id=DICE, entry_point=DiceEnv)


def test_what_an_environment_draws_is_the_same_for_all_rollouts_of_a_task(
    make_tokenizer: Any,
) -> None:
    tokenizer = make_tokenizer("qwen3_instruct_2507")
    model = random_model(vocab_size=len(tokenizer), max_position_embeddings=4096)
    asked = [Request(f"t-{n % 3}", 0, f"{n}") for n in range(4)]

    def questions(order: list[int]) -> dict[str, str]:
        player = Player(model, tokenizer, DICE, {}, PlaySettings(max_tokens=2, at_once=2))
        played = player.play([asked[n] for n in order])
        return {r.request.stream: r.episode.question for r in played if r.episode}

    one, other = questions([0, 1, 2, 3]), questions([3, 1, 0, 2])

    assert one == other
    assert one["0"] == one["3"]  # the same task: what is compared has to be of one world
    assert len(set(one.values())) == 3


@pytest.mark.parametrize(
    ("family", "options", "attention"),
    [
        ("Llama", {}, "sdpa"),
        pytest.param(
            "Gemma3Text",
            {"head_dim": 8, "sliding_window": 8},
            "eager",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_rollout_mixes_no_devices(family: str, options: dict[str, Any], attention: str) -> None:
    """On a device that only exists for those who look where tensors are."""
    with FakeTensorMode():
        with torch.device("lazy:0"):
            model = random_model(family, attention, **options).train(False)
        decoder = Decoder(model, 3)
        decoder.feed(0, [[1, 2, 3], [4, 5]], [0, 0])
        decoder.cache.move([0, 1, 0], 3)
        decoder.cache.swap(0, 1, 3)
        logits = decoder.feed(0, [[7], [8], [9]], [3, 2, 3])

    assert str(logits.device) == "lazy:0"


@pytest.mark.parametrize("name", ["dapo", "gspo"])
def test_a_loss_mixes_no_devices(name: str) -> None:
    with FakeTensorMode():
        tables = [torch.randn(4, 6, device="lazy:0") for _ in range(4)]
        config = loss_config(name, beta=0.1, entropy_bonus=0.1)
        found = policy_loss(
            tables[0].requires_grad_(),
            tables[1],
            torch.randn(4, device="lazy:0"),
            torch.ones(4, 6, dtype=torch.bool, device="lazy:0"),
            config=config,
            ref_logprobs=tables[2],
            entropy=tables[3],
            totals=Totals(4.0, 24.0),
        )
        found.value.backward()  # type: ignore[no-untyped-call]

    assert {str(value.device) for value in found.metrics.values()} == {"lazy:0"}
