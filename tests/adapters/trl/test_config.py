"""Settings for TRL that are safe, that are refused, and that are warned about."""

import importlib.util
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from trl import GRPOConfig

from adapters.training.guards.config import Action
from adapters.trl import grpo_config
from adapters.trl.config import check_guards, check_sampling, guard_config
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch


@pytest.fixture
def make(tmp_path: Path) -> Any:
    return lambda **settings: grpo_config(output_dir=str(tmp_path), use_cpu=True, **settings)


def test_the_config_is_trls_with_safe_defaults(make: Any) -> None:
    config = make()
    assert type(config) is GRPOConfig
    assert (config.num_generations, config.generation_batch_size) == (8, 32)
    assert (config.scale_rewards, config.beta, config.epsilon_high) == ("none", 0.01, 0.28)
    assert (config.mask_truncated_completions, config.shuffle_dataset) == (True, False)
    assert (config.logging_steps, config.logging_nan_inf_filter) == (1, False)


def test_every_argument_of_trls_config_overrides_the_defaults(make: Any) -> None:
    config = make(loss_type="bnpo", delta=4.0, num_iterations=2, beta=0.0, num_generations=4)
    assert (config.loss_type, config.delta, config.num_iterations) == ("bnpo", 4.0, 2)
    assert (config.beta, config.num_generations) == (0.0, 4)


def test_the_machine_decides_on_number_format_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = grpo_config(output_dir=str(tmp_path), use_cpu=True)
    assert (config.bf16, config.gradient_checkpointing) == (False, False)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr("transformers.training_args.is_torch_bf16_gpu_available", lambda: True)
    config = grpo_config(output_dir=str(tmp_path))
    assert (config.bf16, config.gradient_checkpointing) == (True, True)
    config = grpo_config(output_dir=str(tmp_path), fp16=True, gradient_checkpointing=False)
    assert (config.bf16, config.gradient_checkpointing) == (False, False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learning_rat": 1}, "no argument 'learning_rat'. Did you mean learning_rate"),
        ({"eval_strategy": "sometimes"}, "invalid settings of GRPOConfig"),
        ({"temperature": 0}, r"temperature must be above 0; got 0\."),
        ({"beta": -0.1}, r"beta must be at least 0; got -0\.1"),
        ({"num_iterations": 0}, "num_iterations must be at least 1"),
        ({"max_completion_length": 0}, "max_completion_length must be at least 1"),
        ({"loss_type": "ppo"}, "loss_type must be one of dapo, .*; got 'ppo'"),
        ({"scale_rewards": "grup"}, "one of none, group, batch; got 'grup'"),
        ({"importance_sampling_level": "word"}, "one of token, sequence; got 'word'"),
        ({"num_generations": 2, "scale_rewards": "group"}, "num_generations=8 or scale_rewards"),
        ({"loss_type": "cispo"}, r"Set epsilon_high=5\.0"),
        ({"loss_type": "cispo", "epsilon_high": None}, r"Set epsilon_high=5\.0"),
    ],
)
def test_settings_that_can_only_fail_are_refused_with_the_reason(
    make: Any, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make(**settings)


def test_groups_that_are_split_over_processes_are_refused(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GRPOConfig, "world_size", 2)
    settings = {"per_device_train_batch_size": 4, "num_generations": 8}
    with pytest.raises(ConfigurationError, match=r"each process has 4 rollouts .* in groups of 8"):
        make(gradient_accumulation_steps=1, **settings)
    assert make(gradient_accumulation_steps=2, **settings).generation_batch_size == 16


@pytest.mark.parametrize(
    ("mode", "words"), [("colocate", r"pip install 'trl\[vllm\]'"), ("server", "trl vllm-serve")]
)
def test_vllm_that_is_not_installed_is_refused_with_the_command_that_installs_it(
    make: Any, mode: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "vllm" else found(name, *a)
    )
    with pytest.raises(ConfigurationError, match=words):
        make(use_vllm=True, vllm_mode=mode)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_generations": 2}, "68 %"),
        ({"use_bias_correction_kl": False}, "by 79 %"),
        ({"max_grad_norm": 0.0}, "without bound"),
    ],
)
def test_settings_that_often_fail_are_warned_about(
    make: Any, settings: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        make(**settings)
    assert words in caplog.text


def test_nothing_is_said_of_healthy_settings(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    make(loss_type="cispo", epsilon_high=5.0, scale_rewards="batch", top_k=0)
    assert not [record for record in caplog.records if record.name.startswith("adapters")]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_tool_calling_iterations": 3}, "Set step_limit"),
        ({"top_p": 0.9}, r"top_p=0\.9 has no effect without vLLM"),
        ({"top_k": 20}, "top_k=20"),
        ({"min_p": 0.1}, r"min_p=0\.1"),
        ({"repetition_penalty": 1.1}, r"repetition_penalty=1\.1"),
        ({"generation_kwargs": {"do_sample": False}}, "generation_kwargs"),
        ({"cache_implementation": "static"}, "cache_implementation"),
    ],
)
def test_settings_of_trls_own_generation_are_refused_in_any_config(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    config = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, **settings)
    with pytest.raises(ConfigurationError, match=words):
        check_sampling(config)


def test_vllm_samples_as_it_is_told(tmp_path: Path) -> None:
    config = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, top_p=0.9)
    config.use_vllm = True
    check_sampling(config)


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("fsdp", ["full_shard"], "FSDP or DeepSpeed"),
        ("deepspeed", "ds.json", "FSDP or DeepSpeed"),
        ("distributed_state", SimpleNamespace(distributed_type="FSDP"), "FSDP or DeepSpeed"),
        ("distributed_state", SimpleNamespace(distributed_type="DEEPSPEED"), "FSDP or DeepSpeed"),
        ("optim", "galore_adamw_layerwise", "optim='galore_adamw_layerwise'"),
        ("optim", "lomo", "optim='lomo'"),
    ],
)
def test_guards_only_warn_where_weights_are_sharded_or_move_inside_backward(
    make: Any, setting: str, value: Any, words: str
) -> None:
    check_guards(make(), acts=True)
    given = {"optim": "adamw_torch", "fsdp": [], "deepspeed": None, "distributed_state": None}
    config = SimpleNamespace(**{**given, setting: value})
    with pytest.raises(ConfigurationError, match=f"cannot act with {words}.*only_warn"):
        check_guards(config, acts=True)
    check_guards(config, acts=False)


def test_guards_are_made_of_their_fields() -> None:
    assert guard_config({}).actions == {}
    assert guard_config({"actions": {"kl": ["warn"]}}).actions == {"kl": (Action.WARN,)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"idle_steps": 0}, "idle_steps must be"),
        ({"idle_stebs": 1}, "idle_stebs: unknown setting"),
        ({"actions": {"kl": ["explode"]}}, r"actions\.kl"),
    ],
)
def test_fields_of_guards_that_do_not_exist_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        guard_config(fields)
