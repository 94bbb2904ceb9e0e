"""`LossCheck` compares the tokens that TRL trains on with the rollouts that were generated.

TRL's own code computes the loss from the rollouts and may change with any release. Therefore the
gradient is checked for the first batch of a run that has a learning signal. A hook on the output of
the model receives the gradient of each token's log-probability. The gradient must be zero for all
tokens that the policy did not sample. The update must increase the probability of tokens of
rollouts whose reward is above the mean of their group, and must decrease the probability of tokens
of the other rollouts. For later batches, the same hook measures the metric `mismatch`.
"""

from __future__ import annotations

import logging
import math
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from adapters.training.algorithms.advantages import advantages
from toolgym.errors import ConfigurationError

_logger = logging.getLogger(__name__)
_CERTAIN: Final = -1e-3
"""Log-probability above which rounding may make a token's gradient zero."""
_CURE: Final = (
    "Install a version of trl that this package is tested with (constraints.txt), report this, or"
    " train with `toolgym train --trainer reference`."
)


_hooks: WeakKeyDictionary[nn.Module, RemovableHandle] = WeakKeyDictionary()
"""The hook of each model. A later trainer of the same model replaces the hook."""


@dataclass
class _Expected:
    """A rollout as expected in the loss.

    Attributes:
        prompt: Tokens of the prompt.
        completion: Tokens of the completion.
        mask: 1 for tokens in the loss.
        log_probs: Log-probabilities at sampling.
        lead: Reward minus the mean reward of the group; 0 without a reward.
        seen: Whether a forward pass contained the rollout.
    """

    prompt: list[int]
    completion: list[int]
    mask: list[int]
    log_probs: list[float]
    lead: float
    seen: bool = False


class LossCheck:
    """A check of the forward passes from which TRL computes the loss.

    Args:
        trainer: The `GRPOTrainer`, after its optimizer has been created.

    Raises:
        ConfigurationError: If a trainable tensor is not in the optimizer.
    """

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._expected: list[_Expected] = []
        self._step, self._is_first = -1, True
        self._sums = torch.zeros(2, dtype=torch.float64)  # sum of k3, and number of tokens
        _check_optimizer(trainer)
        if (earlier := _hooks.pop(trainer.model, None)) is not None:
            earlier.remove()
        own = weakref.ref(self)  # the model must neither keep the check alive nor copy it

        def hook(model: Any, args: Any, kwargs: Mapping[str, Any], output: Any) -> None:
            if (check := own()) is not None:
                check._after_forward(kwargs, output)

        _hooks[trainer.model] = trainer.model.register_forward_hook(hook, with_kwargs=True)

    def expect(self, output: Mapping[str, list[Any]], size: int) -> None:
        """Set the rollouts that the next updates train on.

        Args:
            output: The result of `Rollouts` for TRL.
            size: Size of the groups.
        """
        learned = [each for each in self._expected if any(each.mask) and abs(each.lead) >= 1e-6]
        if self._is_first and learned:
            self._is_first = False
            if not any(each.seen for each in learned):
                _logger.warning(
                    "The first batch was not checked, and `mismatch` is not measured, because the"
                    " model returns neither `log_probs` nor `logits` in TRL's loss. This is the"
                    " case with use_liger_kernel=True."
                )
        self._step = self._trainer.state.global_step
        columns = (output["prompt_ids"], output["completion_ids"], output["env_mask"])
        scores = [math.nan if score is None else score for score in output["score"]]
        groups = torch.arange(len(scores)) // size
        leads = advantages(
            "group_centered", torch.tensor(scores, dtype=torch.float64), groups
        ).tolist()
        rows = zip(*columns, output["logprobs"], leads, strict=True)
        self._expected = [_Expected(*row) for row in rows]

    def take_mismatch(self) -> dict[str, float]:
        """Return the metric `mismatch` since the last call, over all processes.

        The result is empty if the metric was not measured.
        """
        accelerator = self._trainer.accelerator
        device = accelerator.device
        dtype = torch.float32 if device.type == "mps" else torch.float64
        total, count = accelerator.reduce(self._sums.to(device, dtype), reduction="sum").tolist()
        self._sums.zero_()
        return {"mismatch": total / count} if count else {}

    def _after_forward(self, kwargs: Mapping[str, Any], output: Any) -> None:
        """Measure a forward pass with gradient, and check its gradient in the first batch."""
        values = getattr(output, "log_probs", None)
        values = getattr(output, "logits", None) if values is None else values
        is_current = self._trainer.state.global_step == self._step
        if not is_current or not isinstance(values, Tensor) or not values.requires_grad:
            return
        rows = self._rows(kwargs)
        if self._is_first:
            check: Any = values.register_hook
            check(lambda gradient: self._check_gradient(gradient, rows))
        with torch.no_grad():
            for row, (begin, each) in enumerate(rows):
                if each is None or not any(each.mask) or each.seen:
                    continue
                each.seen = True
                span = slice(begin - 1, begin - 1 + len(each.completion))
                ids = torch.tensor(each.completion, device=values.device)
                new = _log_probs(values[row, span], ids, self._trainer.args.temperature)
                old = torch.tensor(each.log_probs, device=values.device)
                kept = torch.tensor(each.mask, device=values.device).bool() & old.isfinite()
                difference = (new - old)[kept].double().cpu()
                k3 = torch.expm1(difference) - difference
                self._sums += torch.tensor([float(k3.sum()), float(kept.sum())])

    def _rows(self, kwargs: Mapping[str, Any]) -> list[tuple[int, _Expected | None]]:
        """Return the start of the completion and the rollout of each row of a forward pass.

        Rollouts with the same tokens cannot be distinguished. If such rollouts differ in other
        respects, their rows are not checked.
        """
        ids, attention = kwargs.get("input_ids"), kwargs.get("attention_mask")
        if ids is None:
            return []
        texts = ids.tolist()
        starts = (
            attention.long().argmax(dim=1).tolist() if attention is not None else [0] * len(ids)
        )
        rows: list[tuple[int, _Expected | None]] = []
        for text, start in zip(texts, starts, strict=True):
            found = [each for each in self._expected if _begins_with(text, start, each)]
            found.sort(key=lambda each: (-len(each.completion), each.seen))
            if not found:
                rows.append((0, None))
                continue
            first = found[0]
            twins = [each for each in found if each.completion == first.completion]
            if any((each.mask, each.lead) != (first.mask, first.lead) for each in twins):
                first.seen, first = True, replace(first, mask=[], lead=0.0)
            rows.append((start + len(first.prompt), first))
        return rows

    def _check_gradient(
        self, gradient: Tensor, rows: Sequence[tuple[int, _Expected | None]]
    ) -> None:
        """Check the gradient of each row's tokens.

        Raises:
            ConfigurationError: If the loss contains incorrect tokens, omits tokens, or changes the
                probability of tokens in the wrong direction. The message says which of these is the
                case.
        """
        is_exact = gradient.dim() == 2  # log-probabilities, or else logits [B, L, V]
        for row, (begin, each) in enumerate(rows):
            own = gradient[row] if is_exact else gradient[row].abs().amax(dim=-1)
            if each is None:
                if own.any():
                    raise _refusal("the loss has a sequence that was not played")
                continue
            if not each.mask:
                continue
            end = begin + len(each.completion)
            mask = torch.tensor([*[0] * (begin - 1), *each.mask], device=own.device).bool()
            mask = torch.nn.functional.pad(mask, (0, max(0, len(own) - len(mask))))[: len(own)]
            strange = int((own[~mask] != 0).sum())
            if strange:
                raise _refusal(
                    f"the loss includes {strange} tokens that the policy did not sample or that"
                    " are excluded, so its mask is not `env_mask`"
                )
            inner, lead = own[begin - 1 : end - 1], each.lead
            if abs(lead) < 1e-6:
                continue
            sure = torch.tensor(each.log_probs, device=own.device) < _CERTAIN
            sampled = torch.tensor(each.mask, device=own.device).bool() & sure
            missing = int((inner[sampled] == 0).sum())
            if missing and _masks_nothing_else(self._trainer):
                raise _refusal(
                    f"the loss lacks {missing} of {int(sampled.sum())} tokens of a rollout, so its"
                    " mask is not `env_mask`, or its reward is not the score"
                )
            # At the first step the KL penalty has no gradient.
            is_start = self._trainer.state.global_step == 0
            if is_exact and is_start and bool((inner[sampled] * lead > 0).any()):
                raise _refusal(
                    f"a rollout whose score differs from the mean of its group by {lead:+.3g} is"
                    " trained in the opposite direction, so its reward in TRL is not the"
                    " environment's score. Use no other reward function and no reward_weights"
                )


def _begins_with(text: list[int], start: int, each: _Expected) -> bool:
    middle = start + len(each.prompt)
    end = middle + len(each.completion)
    return text[start:middle] == each.prompt and text[middle:end] == each.completion


def _log_probs(values: Tensor, ids: Tensor, temperature: float) -> Tensor:
    """Return the log-probabilities of tokens, given [T] log-probabilities or [T, V] logits."""
    if values.dim() == 1:
        return values.float()
    scaled = values.float() / temperature
    return scaled.log_softmax(dim=-1).gather(1, ids[:, None]).squeeze(1)


def _masks_nothing_else(trainer: Any) -> bool:
    """Return whether TRL's settings do not exclude any further tokens."""
    args = trainer.args
    return bool(
        args.top_entropy_quantile >= 1
        and args.off_policy_mask_threshold is None
        and not (trainer.use_vllm and args.vllm_importance_sampling_correction)
    )


def _check_optimizer(trainer: Any) -> None:
    """Check that the optimizer contains every trainable tensor."""
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        return  # such optimizers hold other tensors than those of the model
    held = {id(each) for group in trainer.optimizer.param_groups for each in group["params"]}
    trained = {name: each for name, each in trainer.model.named_parameters() if each.requires_grad}
    missing = [name for name, each in trained.items() if id(each) not in held]
    if missing or not trained:
        raise ConfigurationError(
            f"{len(missing)} of the {len(trained)} trainable tensors are not in the optimizer"
            f" ({(missing or ['there are none'])[0]}) and would not be trained. Let TRL make the"
            " optimizer and do not pass `optimizers`: an optimizer that is made before"
            " `peft_config` adds the adapter has none of its tensors."
        )


def _refusal(difference: str) -> ConfigurationError:
    return ConfigurationError(
        f"TRL's loss differs from the rollouts of the first batch: {difference}. {_CURE}"
    )
