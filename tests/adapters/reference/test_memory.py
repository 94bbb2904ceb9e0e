"""What a training keeps in memory: the reference, an adapter, a checkpoint that is read."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("peft", reason="needs the extra `train`")

import torch
import transformers

from adapters.reference.checkpoint import Checkpoints
from adapters.reference.config import reference_config
from adapters.reference.decoder import Decoder, check_model
from adapters.reference.kl_reference import CopiedReference
from adapters.training.models.low_rank import Adapter, lora_config
from adapters.training.preflight import memory
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[3]
SHAPE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
IDS = torch.arange(3, 40)[None]


def random_model(family: str = "Llama", dtype: Any = torch.bfloat16, **options: Any) -> Any:
    config = getattr(transformers, f"{family}Config")(**{**SHAPE, **options})
    torch.manual_seed(0)
    auto: Any = transformers.AutoModelForCausalLM
    return auto.from_config(config, dtype=dtype).train(False)


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=IDS, use_cache=False).logits
    return found


def moved(model: Any) -> Any:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    return model


def test_the_reference_stays_what_the_model_was() -> None:
    model = random_model()
    before, reference = logits(model), CopiedReference(model)
    moved(model)

    with reference.active() as active:
        assert torch.equal(logits(active), before)
    assert not torch.equal(logits(model), before)


@pytest.mark.parametrize(
    ("family", "options"), [("Llama", {"tie_word_embeddings": True}), ("Qwen3", {"head_dim": 16})]
)
def test_a_checkpoint_is_read_into_the_memory_that_is_there(
    family: str, options: dict[str, Any], tmp_path: Path, tokenizer: Any
) -> None:
    checkpoints, model = Checkpoints(tmp_path, keep=2), random_model(family, **options)
    state = {"0.first": torch.arange(4.0)}
    before = logits(model)
    checkpoints.save(3, model, tokenizer, state, {"updates": 3})
    places = [parameter.data_ptr() for parameter in moved(model).parameters()]

    saved = checkpoints.load_weights(3, model)

    assert torch.equal(logits(model), before)
    assert [parameter.data_ptr() for parameter in model.parameters()] == places
    assert (list(saved), checkpoints.load_state(3)["updates"]) == (["0.first"], 3)
    assert torch.equal(saved["0.first"], state["0.first"])


def test_a_checkpoint_in_several_files_is_read_too(tmp_path: Path, tokenizer: Any) -> None:
    checkpoints, model = Checkpoints(tmp_path, keep=2), random_model()
    before = logits(model)
    checkpoints.save(3, model, tokenizer, {}, {})
    model.save_pretrained(tmp_path / "checkpoint-3", max_shard_size="40KB")
    (tmp_path / "checkpoint-3" / "model.safetensors").unlink(missing_ok=True)
    assert len(list((tmp_path / "checkpoint-3").glob("model-*.safetensors"))) > 1

    checkpoints.load_weights(3, moved(model))

    assert torch.equal(logits(model), before)


def test_an_adapter_of_another_shape_is_refused(tmp_path: Path, tokenizer: Any) -> None:
    one, other = (Adapter(random_model(), lora_config(rank, 8, "all-linear")) for rank in (4, 8))
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save(3, one, tokenizer, {}, {})

    with pytest.raises(ConfigurationError, match="holds no adapter of the shape"):
        checkpoints.load_weights(3, other)


@pytest.mark.nightly
def test_no_more_than_one_module_is_in_float32_while_a_model_is_checked() -> None:
    model = random_model(num_hidden_layers=6)
    wide: list[int] = []

    def count(*_: Any) -> None:
        wide.append(sum(p.dtype == torch.float32 for p in model.parameters()))

    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(count)
    check_model(model)

    assert 1 in wide
    assert max(wide) <= 1
    decoder = Decoder(model, 1)
    assert decoder.feed(0, [[3, 4]], [0]).dtype == torch.bfloat16


def test_the_arithmetic_knows_the_defaults_of_the_trainer() -> None:
    defaults = reference_config({})
    assert {name: getattr(defaults, name) for name in memory._DEFAULTS} == memory._DEFAULTS
    assert defaults.loss.beta == 0.01
