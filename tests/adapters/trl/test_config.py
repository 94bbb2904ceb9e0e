"""Settings that are safe, that are refused, and that are warned about."""

import importlib.util
import logging
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from trl import TrlParser

from adapters.training.guards.config import Action
from adapters.trl import StableGRPOConfig
from adapters.trl.config import check_config
from adapters.trl.settings import grpo_config
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch


@pytest.fixture
def make(tmp_path: Path) -> Any:
    return lambda **settings: StableGRPOConfig(output_dir=str(tmp_path), use_cpu=True, **settings)


def test_what_nobody_asked_for_is_safe(make: Any) -> None:
    config = make()
    assert (config.num_generations, config.scale_rewards) == (8, "none")
    assert config.estimator == "batch_normalized_baseline"
    assert (config.beta, config.epsilon_high) == (0.01, 0.28)
    assert config.use_bias_correction_kl
    assert config.mask_truncated_completions
    assert config.dynamic_sampling
    assert config.generation_batch_size == 32
    assert not config.only_warns
    assert (config.bf16, config.gradient_checkpointing) == (False, False)


def test_the_machine_decides_on_number_format_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr("transformers.training_args.is_torch_bf16_gpu_available", lambda: True)
    config = StableGRPOConfig(output_dir=str(tmp_path))
    assert (config.bf16, config.gradient_checkpointing) == (True, True)
    config = StableGRPOConfig(output_dir=str(tmp_path), fp16=True, gradient_checkpointing=False)
    assert (config.bf16, config.gradient_checkpointing) == (False, False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_generations": 2, "scale_rewards": "group"}, r"\+-\.707.*37 of its 38.*97\.4 %"),
        (
            {"num_generations": 2, "scale_rewards": "group", "advantage_estimator": "trl"},
            "num_generations=8, or scale_rewards='none'",
        ),
        ({"num_generations": 2, "advantage_estimator": "group_normalized"}, "97.4 %"),
        ({"loss_type": "cispo"}, r"\.043 instead of \.216.*epsilon_high=5\.0"),
        ({"loss_type": "cispo", "epsilon_high": None}, "loss_type='cispo'"),
        ({"use_vllm": True}, r"pip install 'trl\[vllm\]'"),
        ({"use_vllm": True, "vllm_mode": "server"}, "vllm-serve"),
        ({"optim": "galore_adamw_layerwise"}, "inside backward"),
        ({"advantage_estimator": "median"}, "no advantage estimator 'median'; choose among"),
        (
            {"advantage_estimator": "leave_one_out", "scale_rewards": "batch"},
            "two ways to scale",
        ),
        ({"multi_objective_aggregation": "normalize_then_sum"}, "advantage_estimator='trl'"),
        ({"advantage_clip": 0.0}, "above 0"),
        ({"max_draws": 0.5}, "at least 1"),
        ({"snapshot_steps": 0}, "at least 1"),
        ({"tool_workers": 0}, "tool_workers must be at least 1"),
        ({"num_iterations": 0}, "or no step is made"),
        ({"max_tool_calling_iterations": 0}, "or no tool is run"),
        ({"temperature": 0}, r"temperature must be above 0; got 0\."),
        ({"beta": -0.1}, "pushes away from the reference"),
        ({"epsilon": 2.0}, "epsilon must be above 0 and below 1"),
        ({"loss_type": "ppo"}, "loss_type must be one of 'dapo', .*; got 'ppo'"),
        ({"scale_rewards": "grup"}, "one of 'none', 'group', 'batch'; got 'grup'"),
        ({"vllm_mode": "nowhere"}, "'colocate', 'server'; got 'nowhere'"),
        ({"dynamic_sampling": "False"}, "dynamic_sampling must be true or false, got 'False'"),
        ({"learning_rate": "fast"}, "learning_rate must be a number, got 'fast'"),
        ({"max_steps": 2.5}, "max_steps must be a whole number"),
        ({"shuffle_dataset": 1}, "shuffle_dataset must be true or false, got 1"),
        ({"guards": ["kl"]}, "guards: Input should be a valid dictionary.*only_warn"),
        ({"guards": "only_warn"}, "guards: Invalid JSON"),
        ({"guards": {"idle_steps": 0}}, "idle_steps: Input should be"),
        ({"guards": {"idle_stebs": 1}}, "idle_stebs: Extra inputs"),
        ({"guards": '{"actions": {"kl": ["explode"]}}'}, r"actions\.kl"),
    ],
)
def test_what_is_known_to_fail_is_refused_with_the_reason(
    make: Any, settings: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    absent = {"vllm": None}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: absent.get(name, found(name, *a))
    )
    if "vllm" not in str(settings):
        monkeypatch.undo()
    with pytest.raises(ConfigurationError, match=words):
        make(**settings)


FSDP1 = {"fsdp": True, "fsdp_config": {"version": 1}}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"deepspeed": "something"}, "with DeepSpeed: .*Shard with FSDP2 .*fsdp_version: 2"),
        (FSDP1, "with FSDP1: .*Shard with FSDP2 .*fsdp_version: 2"),
        ({"fsdp": True, "fsdp_config": {"version": 2, "xla": True}}, "with FSDP1"),
    ],
)
def test_weights_that_are_no_tensors_of_their_own_are_watched_but_not_acted_upon(
    make: Any, settings: dict[str, Any], words: str
) -> None:
    config = make()
    for name, value in settings.items():
        setattr(config, name, value)
    with pytest.raises(ConfigurationError, match=words):
        check_config(config)
    config.guards = {"only_warn": True}
    assert check_config(config) == []


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"ACCELERATE_USE_DEEPSPEED": "true"}, "with DeepSpeed"),
        ({"ACCELERATE_USE_FSDP": "true"}, "with FSDP1"),
        ({"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "1"}, "with FSDP1"),
    ],
)
def test_sharding_that_the_launcher_asked_for_is_seen_too(
    make: Any, environ: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make()
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=words):
        check_config(config)
    config.guards = {"only_warn": True}
    assert check_config(config) == []


def test_guards_act_under_fsdp2_however_it_was_asked_for(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for settings in ({"fsdp": True}, {"fsdp": True, "fsdp_config": {"fsdp_version": 2}}):
        assert make(**settings).fsdp_config.get("version", 2) == 2
    config = make()
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("FSDP_VERSION", "2")
    assert check_config(config) == []


def test_groups_are_whole_in_each_process(make: Any) -> None:
    config = make()
    config.per_device_train_batch_size, config.num_generations = 4, 8
    config.steps_per_generation = 3
    with pytest.raises(ConfigurationError, match="each has 12 rollouts of a generation batch"):
        check_config(config)
    config.steps_per_generation = 4
    assert check_config(config) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_generations": 2}, "68 %"),
        ({"use_bias_correction_kl": False}, "off by 79 %"),
        ({"max_grad_norm": 0.0}, "without a bound"),
        (
            {"top_p": 0.9, "top_k": 20},
            "top_p=0.9, top_k=20: rollouts are then sampled from another",
        ),
    ],
)
def test_what_often_fails_is_warned_about(
    make: Any, settings: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        make(**settings)
    assert words in caplog.text


def test_healthy_settings_say_nothing(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    make(loss_type="cispo", epsilon_high=5.0, scale_rewards="batch")
    make(num_generations=4, advantage_estimator="leave_one_out")
    assert not [r for r in caplog.records if r.name.startswith("adapters")]


def test_guards_can_be_given_as_a_dict_or_as_json(make: Any) -> None:
    for given in ({"actions": {"kl": ["warn"]}}, '{"actions": {"kl": ["warn"]}}'):
        assert make(guards=given).guard_config().actions == {"kl": (Action.WARN,)}
    assert make(guards=None).guard_config().actions == {}


def test_every_argument_of_trls_config_is_there(make: Any) -> None:
    config = make(loss_type="bnpo", delta=4.0, top_entropy_quantile=0.8, num_iterations=2)
    assert (config.loss_type, config.delta, config.num_iterations) == ("bnpo", 4.0, 2)


def test_trls_own_parser_of_command_lines_reads_it(tmp_path: Path) -> None:
    parser = TrlParser((StableGRPOConfig,))
    words = ["--output_dir", str(tmp_path), "--use_cpu", "true", "--dynamic_sampling", "false"]
    words += ["--guards", '{"only_warn": true}', "--scale_rewards", "batch"]
    (config,) = parser.parse_args_and_config(words)
    assert (config.only_warns, config.dynamic_sampling) == (True, False)
    assert config.estimator == "batch_scaled"


def test_settings_that_make_no_config_are_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"make no GRPOConfig.*learning_speed"):
        grpo_config({"output_dir": str(tmp_path), "learning_speed": 1}, step_limit=5)
    with pytest.raises(ConfigurationError, match=r"^these settings are known to fail: loss_type"):
        grpo_config({"output_dir": str(tmp_path), "loss_type": "cispo"}, step_limit=5)
