"""Settings that are known to fail, each with what was measured when it did.

What can only fail is refused, with the setting that works; what fails often is warned about. The
figures are of runs and checks that were made: of groups of two, of TRL 1.16's own loss, and of each
estimator's gradient against the exact one.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from accelerate.utils import parse_flag_from_env

from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from adapters.trl.config import StableGRPOConfig

Refusal = Callable[[Any], str | None]


def _pairs_by_std(config: StableGRPOConfig) -> str | None:
    if config.num_generations != 2 or not config.divides_by_std:
        return None
    return (
        "groups of 2 divided by their standard deviation: every advantage is then +-.707, whatever"
        " the gap, and a run like that collapsed right after 37 of its 38 updates (97.4 %), though"
        " its learning rate had been cut to a tenth. Set num_generations=8, or"
        " scale_rewards='none'."
    )


def _cispo_bound(config: StableGRPOConfig) -> str | None:
    if config.loss_type != "cispo" or (config.epsilon_high or config.epsilon) >= 1:
        return None
    return (
        "loss_type='cispo' with epsilon_high below 1: TRL takes it for the largest ratio itself,"
        " not for what goes above 1, so every token's weight is cut to it (measured: a gradient"
        " norm of .043 instead of .216). Set epsilon_high=5.0."
    )


def _split_groups(config: StableGRPOConfig) -> str | None:
    own = config.per_device_train_batch_size * config.steps_per_generation
    if own % config.num_generations == 0:
        return None
    return (
        f"groups split over processes: each has {own} rollouts of a generation batch, in groups of"
        f" {config.num_generations}. Make per_device_train_batch_size * steps_per_generation a"
        " multiple of num_generations, so that groups can be kept or replaced as a whole."
    )


def _sharded(config: StableGRPOConfig) -> str | None:
    launched = [parse_flag_from_env(f"ACCELERATE_USE_{name}") for name in ("DEEPSPEED", "FSDP")]
    if config.only_warns or not (config.deepspeed or config.fsdp or any(launched)):
        return None
    return (
        "guards that act, with DeepSpeed or FSDP: DeepSpeed's engine moves the weights inside"
        " backward, where no update can be left out any more, and snapshots of sharded weights are"
        " not taken. Train with plain data parallelism or LoRA, or set guards={'only_warn': true}."
    )


def _steps_in_backward(config: StableGRPOConfig) -> str | None:
    name = str(getattr(config.optim, "value", config.optim))
    if config.only_warns or not ("layerwise" in name or "lomo" in name):
        return None
    return (
        f"guards that act, with optim={name!r}: it moves the weights inside backward, where no"
        " update can be left out any more. Take another one, such as adamw_torch."
    )


def _no_vllm(config: StableGRPOConfig) -> str | None:
    if not config.use_vllm or importlib.util.find_spec("vllm") is not None:
        return None
    start = " and start `trl vllm-serve --model MODEL`" if config.vllm_mode == "server" else ""
    return (
        f"vLLM is to generate (vllm_mode={config.vllm_mode!r}), and it is not installed here. On a"
        f" machine with a GPU run pip install 'trl[vllm]'{start}; or leave it out: TRL then"
        " generates with transformers."
    )


_REFUSED: Final[tuple[Refusal, ...]] = (
    _pairs_by_std,
    _cispo_bound,
    _split_groups,
    _sharded,
    _steps_in_backward,
    _no_vllm,
)


def _pairs(config: StableGRPOConfig) -> str | None:
    if config.num_generations > 3:
        return None
    return (
        f"groups of {config.num_generations}: at a success rate of 20 % the members of a group of 2"
        " are all alike in 68 % of the cases, of 8 in 17 %, and such a group teaches nothing."
    )


def _biased_kl(config: StableGRPOConfig) -> str | None:
    if not config.beta or config.use_bias_correction_kl:
        return None
    return (
        "use_bias_correction_kl=False: the gradient of that KL term is off by 79 % of the exact"
        " one (measured on a categorical); with the correction it is exact."
    )


def _sampled_otherwise(config: StableGRPOConfig) -> str | None:
    cuts = {
        "top_p": (config.top_p, 1.0),
        "top_k": (config.top_k or 0, 0),
        "min_p": (config.min_p or 0.0, 0.0),
        "repetition_penalty": (config.repetition_penalty, 1.0),
    }
    cutting = [f"{name}={value}" for name, (value, neutral) in cuts.items() if value != neutral]
    if not cutting or (config.use_vllm and config.vllm_importance_sampling_correction):
        return None
    return (
        f"{', '.join(cutting)}: rollouts are then drawn from another distribution than the one"
        " whose log-probabilities the loss takes, and without vLLM no ratio corrects for it. Leave"
        " it out; temperature is taken into account."
    )


def _no_clipping(config: StableGRPOConfig) -> str | None:
    if config.max_grad_norm > 0:
        return None
    return "max_grad_norm=0: one batch with a large gradient moves the weights without a bound."


_WARNED: Final[tuple[Refusal, ...]] = (_pairs, _biased_kl, _sampled_otherwise, _no_clipping)


def check_config(config: StableGRPOConfig) -> list[str]:
    """Refuse what can only fail.

    Returns:
        What fails often, one sentence each, for a warning.

    Raises:
        ConfigurationError: The first setting that is refused, with what was measured and the cure.
    """
    for refusal in _REFUSED:
        reason = refusal(config)
        if reason is not None:
            raise ConfigurationError(f"these settings are known to fail: {reason}")
    return [told for warning in _WARNED if (told := warning(config)) is not None]
