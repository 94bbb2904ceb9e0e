"""From a batch and its advantages to gradients: the forward pass, the loss, the backward pass.

The model is called as any causal language model is; only its last layer, from hidden states to the
vocabulary, is made to see no more than the positions that predict a learnt token. Half of a
rollout is prompt and results of tools, and logits over the vocabulary are the largest thing that an
update keeps in memory.

Log-probabilities are taken at the temperature that the tokens were drawn with, so that the ratio to
those that were recorded is 1 until the weights move.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from adapters.reference.batch import Batch, Pass
from adapters.reference.config import ReferenceConfig
from adapters.reference.distributed import Processes
from adapters.reference.losses import Totals, policy_loss
from adapters.training.models.output_layer import sees_only

_AT_ONCE = 2**24  # logits whose probabilities are in memory together: 64 MiB in float32


class Spoken(NamedTuple):
    """What a model says of the learnt tokens of a pass.

    Attributes:
        log_probs: [n, t] float, 0 at tokens that are not learnt.
        entropy: [n, t] float, of the distribution that each token came from, in nats.
    """

    log_probs: Tensor
    entropy: Tensor


class Learner:
    """Computes gradients for a model.

    Args:
        model: The policy.
        reference: The policy that it shall stay close to; None where the loss has no price on that.
        config: Loss, temperature, size of a pass.
        processes: That have other parts of a batch; None: there are none.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        reference: PreTrainedModel | None,
        config: ReferenceConfig,
        processes: Processes | None = None,
    ) -> None:
        self._model, self._reference, self._config = model, reference, config
        if reference is not None:
            reference.requires_grad_(False).train(False)
        self._processes = processes or Processes()

    def accumulate(
        self,
        batch: Batch,
        advantages: Tensor,
        before: Tensor | None,
        reference: Tensor | None,
    ) -> dict[str, float]:
        """Add the gradients of a batch to those that the parameters hold.

        Args:
            batch: All that this process has of it.
            advantages: [N] or [N, T] float.
            before: [N, T] float, log-probabilities that ratios are taken to, or None for the
                model's own, as it is.
            reference: [N, T] float, log-probabilities under the reference, or None.

        Returns:
            `loss`, and the metrics of the loss, over all processes.
        """
        counted = self._processes.sum_of(dataclasses.asdict(Totals.of(batch.learnt)))
        totals = Totals(**counted)
        summed: dict[str, Tensor] = {}
        for part in batch.passes(self._config.tokens_per_pass):
            spoken = self._speak(self._model, part, self._config.loss.entropy_bonus > 0)
            loss = policy_loss(
                spoken.log_probs,
                None if before is None else self._taken(before, part),
                self._taken(advantages, part),
                part.learnt.to(self._model.device),
                config=self._config.loss,
                ref_logprobs=None if reference is None else self._taken(reference, part),
                entropy=spoken.entropy,
                totals=totals,
            )
            loss.value.backward()  # type: ignore[no-untyped-call]
            for name, value in {"loss": loss.value.detach(), **loss.metrics}.items():
                summed[name] = summed[name] + value if name in summed else value
        return self._processes.sum_of({name: float(value) for name, value in summed.items()})

    def old_log_probs(self, batch: Batch) -> Tensor | None:
        """What the ratios of a fresh batch are taken to, [N, T]; None for the model as it is.

        To be asked for before the first update from a batch.
        """
        if self._config.loss.old_log_probs == "recorded":
            return batch.log_probs
        return None if self._config.updates_per_batch == 1 else self._log_probs(self._model, batch)

    def reference_log_probs(self, batch: Batch) -> Tensor | None:
        """Those of the learnt tokens under the reference, [N, T]; None without one."""
        return None if self._reference is None else self._log_probs(self._reference, batch)

    @torch.no_grad()
    def _log_probs(self, model: PreTrainedModel, batch: Batch) -> Tensor:
        found = torch.zeros(batch.tokens.shape, dtype=_exact(model.dtype))
        for part in batch.passes(self._config.tokens_per_pass):
            spoken = self._speak(model, part, False)
            found[part.rows, : part.learnt.shape[1]] = spoken.log_probs.cpu()
        return found

    def _taken(self, values: Tensor, part: Pass) -> Tensor:
        """The rows of a pass, where the model is; of values by token, the columns of the pass."""
        rows = values[part.rows]
        if values.dim() == 2:
            rows = rows[:, : part.learnt.shape[1]]
        return rows.to(self._model.device)

    def _speak(self, model: PreTrainedModel, part: Pass, entropy_learns: bool) -> Spoken:
        device = model.device
        ids, predicts, learnt = (t.to(device) for t in (part.ids, part.predicts, part.learnt))
        with sees_only(model, predicts):
            logits = model(input_ids=ids, use_cache=False).logits
        picked = logits[0] if logits.shape[:2] != predicts.shape else logits[predicts]
        # Each learnt token stands one place behind the position that predicts it.
        chosen = ids.roll(-1, dims=1)[predicts]
        log_probs, entropy = _read(picked, chosen, self._config.temperature, entropy_learns)
        return Spoken(_placed(log_probs, learnt), _placed(entropy, learnt))


def _read(
    logits: Tensor, chosen: Tensor, temperature: float, entropy_learns: bool
) -> tuple[Tensor, Tensor]:
    """Log-probability of each chosen token, and entropy of each distribution, [P] both.

    Probabilities take float32, and several tensors of it as large as the logits, which over a large
    vocabulary is more than the model needs. So it is done for some rows after another, and where
    there are several such pieces, each is computed again in the backward pass rather than kept.
    """

    def read(piece: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        spread = torch.log_softmax(piece.to(_exact(piece.dtype)) / temperature, dim=1)
        with torch.set_grad_enabled(entropy_learns and torch.is_grad_enabled()):
            entropy = -(spread.exp() * spread).sum(dim=1)
        return spread.gather(1, tokens[:, None]).squeeze(1), entropy

    rows = max(1, _AT_ONCE // logits.shape[1])
    if len(logits) <= rows:
        return read(logits, chosen)
    pieces = zip(torch.split(logits, rows), torch.split(chosen, rows), strict=True)
    found = [
        checkpoint(read, *piece, use_reentrant=False, preserve_rng_state=False) for piece in pieces
    ]
    log_probs, entropy = zip(*found, strict=True)
    return torch.cat(log_probs), torch.cat(entropy)


def _exact(dtype: torch.dtype) -> torch.dtype:
    """What to compute probabilities in: float32 at least."""
    return torch.promote_types(dtype, torch.float32)


def _placed(values: Tensor, learnt: Tensor) -> Tensor:
    """Values of the learnt tokens, put back in their places; 0 elsewhere."""
    return values.new_zeros(learnt.shape).masked_scatter(learnt, values)
