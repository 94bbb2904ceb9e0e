"""The learner: forward pass, loss and backward pass of a batch with its advantages.

Only the positions that predict a token in the loss go through the model's last layer, from hidden
states to the vocabulary, and where they are many, some after others
(`adapters.training.models.output_layer`). Half of a rollout is prompt and results of tools, and
logits over the vocabulary would be the largest thing that an update keeps in memory.

Log-probabilities are taken at the temperature that the tokens were sampled at, so that the ratio to
those that were recorded is 1 until the weights move.
"""

from __future__ import annotations

import dataclasses
import logging
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from adapters.reference.config import ReferenceConfig
from adapters.reference.distributed import Processes
from adapters.reference.kl_reference import Reference
from adapters.reference.losses import Totals, policy_loss
from adapters.reference.rollout import Batch, Pass
from adapters.training.models.output_layer import in_pieces
from adapters.training.models.shared_prefix import reading, sharing_problem

_LOGITS_OF_A_PASS = 2**27  # of a row that rollouts share, where most tokens predict: 512 MiB

_logger = logging.getLogger(__name__)


class TokenPredictions(NamedTuple):
    """Log-probabilities and entropies of the tokens in the loss.

    Attributes:
        log_probs: [n, t] float, 0 at tokens outside the loss.
        entropy: [n, t] float, of the distribution of each token, in nats.
    """

    log_probs: Tensor
    entropy: Tensor


class Learner:
    """The computation of log-probabilities and gradients of a policy.

    Args:
        reference: The reference of the KL penalty; None where the loss has none.
        config: Loss, temperature, size of a pass.
        processes: The processes that hold other parts of a batch; None: there is one process.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        reference: Reference | None,
        config: ReferenceConfig,
        processes: Processes | None = None,
    ) -> None:
        self._model, self._reference, self._config = model, reference, config
        self._processes = processes or Processes()
        self._can_share: bool | None = None  # measured when there is something to share

    def accumulate(
        self,
        batch: Batch,
        advantages: Tensor,
        old_log_probs: Tensor | None,
        reference: Tensor | None,
    ) -> dict[str, float]:
        """Accumulate the gradients of a batch in the parameters.

        Args:
            batch: The rollouts of this process.
            advantages: [N] or [N, T] float.
            old_log_probs: [N, T] float, under the policy that sampled, or None for the model's
                own, as it is.
            reference: [N, T] float, log-probabilities under the reference, or None.

        Returns:
            `loss`, and the metrics of the loss, over all processes.
        """
        counts = self._processes.sum_of(dataclasses.asdict(Totals.of(batch.loss_mask)))
        totals = Totals(**counts)
        summed: dict[str, Tensor] = {}
        for part in self._passes(batch):
            with reading(self._model, part.packing):
                predictions = self._predict(self._model, part, self._config.loss.entropy_bonus > 0)
                loss = policy_loss(
                    predictions.log_probs,
                    None if old_log_probs is None else self._part_of(old_log_probs, part),
                    self._part_of(advantages, part),
                    part.loss_mask.to(self._model.device),
                    config=self._config.loss,
                    ref_logprobs=None if reference is None else self._part_of(reference, part),
                    entropy=predictions.entropy,
                    totals=totals,
                )
                loss.value.backward()  # type: ignore[no-untyped-call]
            for name, value in {"loss": loss.value.detach(), **loss.metrics}.items():
                summed[name] = summed[name] + value if name in summed else value
        return self._processes.sum_of({name: float(value) for name, value in summed.items()})

    def old_log_probs(self, batch: Batch) -> Tensor | None:
        """The old log-probabilities of a fresh batch, [N, T]; None for the model as it is.

        To be asked for before the first update from a batch.
        """
        if self._config.loss.old_log_probs == "recorded":
            return batch.log_probs
        return None if self._config.updates_per_batch == 1 else self._log_probs(self._model, batch)

    def reference_log_probs(self, batch: Batch) -> Tensor | None:
        """Log-probabilities of the tokens in the loss under the reference, [N, T], or None."""
        if self._reference is None:
            return None
        with self._reference.active() as reference:
            return self._log_probs(reference, batch)

    @torch.no_grad()
    def _log_probs(self, model: PreTrainedModel, batch: Batch) -> Tensor:
        log_probs = torch.zeros(batch.tokens.shape, dtype=_at_least_float32(model.dtype))
        for part in self._passes(batch):
            with reading(model, part.packing):
                predictions = self._predict(model, part, False)
            log_probs[part.rows, : part.loss_mask.shape[1]] = predictions.log_probs.cpu()
        return log_probs

    def _passes(self, batch: Batch) -> list[Pass]:
        """The passes of a batch; with shared beginnings where prompts are long enough for it."""
        tokens, least = self._config.tokens_per_pass, self._config.share_prompts_from
        if least is not None and self._can_share is not False:
            vocabulary = self._model.config.get_text_config().vocab_size
            shared = batch.shared_passes(tokens, max(1, _LOGITS_OF_A_PASS // vocabulary), least)
            if shared and self._can_share is None:
                self._can_share = self._measure_sharing()
            if shared and self._can_share:
                return shared
        return list(batch.passes(tokens))

    def _measure_sharing(self) -> bool:
        problem = sharing_problem(self._model)
        if problem and self._processes.is_main:
            _logger.warning(
                "%s cannot read a shared prompt once (%s): each rollout is read with its own.",
                type(self._model).__name__,
                problem,
            )
        return not problem

    def _part_of(self, values: Tensor, part: Pass) -> Tensor:
        """The rows of a pass on the model's device; of values by token, the columns of the pass."""
        rows = values[part.rows]
        if values.dim() == 2:
            rows = rows[:, : part.loss_mask.shape[1]]
        return rows.to(self._model.device)

    def _predict(
        self, model: PreTrainedModel, part: Pass, entropy_learns: bool
    ) -> TokenPredictions:
        device = model.device
        ids, predicts, loss_mask = (t.to(device) for t in (part.ids, part.predicts, part.loss_mask))
        inputs: dict[str, Any] = {"input_ids": ids}
        if part.packing is not None:
            inputs["position_ids"] = part.packing.positions.to(device)
        compute = partial(
            _log_probs_and_entropies,
            temperature=self._config.temperature,
            entropy_learns=entropy_learns,
        )
        log_probs, entropy = in_pieces(model, predicts, part.targets.to(device), compute, **inputs)
        return TokenPredictions(_scattered(log_probs, loss_mask), _scattered(entropy, loss_mask))


def _log_probs_and_entropies(
    logits: Tensor, targets: Tensor, temperature: float, entropy_learns: bool
) -> tuple[Tensor, Tensor]:
    """Log-probability of each target token, and entropy of each distribution, [P] both."""
    log_softmax = torch.log_softmax(logits.to(_at_least_float32(logits.dtype)) / temperature, dim=1)
    with torch.set_grad_enabled(entropy_learns and torch.is_grad_enabled()):
        entropy = -(log_softmax.exp() * log_softmax).sum(dim=1)
    return log_softmax.gather(1, targets[:, None]).squeeze(1), entropy


def _at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The dtype of probabilities: float32 or wider."""
    return torch.promote_types(dtype, torch.float32)


def _scattered(values: Tensor, loss_mask: Tensor) -> Tensor:
    """Values of the tokens in the loss at their places in the completions; 0 elsewhere."""
    return values.new_zeros(loss_mask.shape).masked_scatter(loss_mask, values)
