"""GRPO on a tool environment: the entire training loop in one file.

`ReferenceTrainer.train` runs these methods in a loop, with evaluations, roll-backs and checkpoints:

    sample: Play `group_size` rollouts of each task, and replace dead groups (dynamic sampling).
    advantages: Compare the reward of each rollout with the other rewards of its group.
    reference_log_probs: Compute log-probabilities of the reference model for the KL penalty.
    gradient: Compute the gradient over the sampled tokens.
    _update: Pass the metrics to the guards, and make the update unless the guards skip it.

A rollout (`adapters.reference.play`) is a list of tokens with a mask: 1 for tokens that the policy
sampled, 0 for tokens of tool results. The loss and the advantage estimator are chosen by name (see
`adapters.reference.losses` and `adapters.training.algorithms.advantages`). Data parallelism,
checkpoints, LoRA, float32 master weights and forward passes are implemented in the modules imported
below.

Not supported: generation on separate devices (use TRL with vLLM), sharded weights (every process
holds the complete model), a value model, asynchronous rollouts, and models with image input.

`toolgym train --trainer reference` runs this trainer after supervised training, with evaluations.
"""

from __future__ import annotations

import copy
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.checkpoint import Checkpoints
from adapters.reference.losses import Pass, Totals, policy_loss
from adapters.reference.play import (
    Player,
    Rollout,
    is_in_loss,
    outcomes,
    shuffle_rewards,
)
from adapters.reference.processes import Processes
from adapters.training.algorithms.advantages import advantages
from adapters.training.algorithms.dynamic_sampling import TaskStream, fill
from adapters.training.algorithms.rollout_metrics import batch_metrics
from adapters.training.guards.config import Action
from adapters.training.guards.fault_limit import FaultLimit, TrainingStopped
from adapters.training.guards.guards import (
    Decision,
    Guards,
    no_snapshot_message,
    rollback_message,
)
from adapters.training.models.demonstrations import playable_tasks
from adapters.training.models.low_rank import Adapter
from adapters.training.models.master_weights import MasterAdamW
from adapters.training.models.memory_needs import Load, bytes_of_update
from adapters.training.models.token_log_probs import moved, passes, token_log_probs
from adapters.training.models.tokenized_examples import Example
from adapters.training.models.weights import fast_dtype, make_ready
from adapters.training.runs.progress import peak_memory
from adapters.training.settings import GrpoSettings
from toolgym.records import EpisodeRecord
from toolgym.runs.metrics import recorded
from toolgym.tries import seed_of_try

_logger = logging.getLogger(__name__)


class Sample(NamedTuple):
    """A rollout in the loss, with m sampled tokens.

    Attributes:
        text: Token ids of prompt and completion, and the loss mask.
        old_log_probs: [m] float, log-probabilities at sampling.
        advantages: [m] float.
    """

    text: Example
    old_log_probs: Tensor
    advantages: Tensor


OnStep = Callable[[int, dict[str, float], list[EpisodeRecord]], None]
Evaluate = Callable[[int, Adapter | None], Mapping[str, float] | None]


class ReferenceTrainer:
    """A trainer that trains a model with GRPO, in place.

    Args:
        model: The policy, on the training device. With several processes, each process moves the
            model to its own device.
        tokenizer: Tokenizer of the model, with a chat template that renders tools.
        env_id: Id of a registered `ToolEnv`.
        folder: Folder for checkpoints. Training resumes from the last checkpoint.
        config: Training settings.
        env_kwargs: Arguments of the environment.
        lora: A PEFT `LoraConfig`; if it is given, an adapter is trained instead of all weights. The
            adapter stays in the model and is available as `adapter`. `adapter.merge()` adds the
            adapter to the weights.
        on_step: Function that is called in process 0 after each step with its number, its metrics
            (`toolgym.runs.metrics`) and the episodes that process 0 played for the step. The list
            of episodes is empty for further updates from the same batch.
        evaluate: Function that is called in process 0 before each batch and at the end, with the
            number of completed steps and the adapter. It returns the metrics of an evaluation, an
            empty mapping if no evaluation is due, or None to end training. The guards check the
            metrics at the next step.
        on_save: Function that is called with the folder of a checkpoint before the checkpoint is
            complete, so that it can add files.

    Raises:
        ConfigurationError: If the environment, the model or its chat template cannot be used.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        env_id: str,
        folder: Path,
        config: GrpoSettings,
        *,
        env_kwargs: Mapping[str, Any] | None = None,
        lora: Any = None,
        on_step: OnStep = lambda step, metrics, episodes: None,
        evaluate: Evaluate = lambda step, adapter: {},
        on_save: Callable[[Path], None] = lambda folder: None,
    ) -> None:
        self.step = 0
        self._config, self._model, self._tokenizer = config, model, tokenizer
        self._on_step, self._evaluate = on_step, evaluate
        self._processes = Processes()
        dtype = fast_dtype() if config.dtype == "auto" else config.dtype
        has_checkpointing = bool(config.gradient_checkpointing)
        make_ready(self._processes.place(model), dtype, has_checkpointing)
        self.player = Player(
            model, tokenizer, env_id, env_kwargs, slots=config.at_once, workers=config.workers
        )
        tasks = self.player.env.tasks
        self._task_ids = tasks.ids
        self._tasks = TaskStream(
            len(tasks),
            seed=config.seed,
            process=self._processes.rank,
            processes=self._processes.size,
            is_playable=lambda position: tasks.refusal_of(tasks[position]) is None,
        )
        self.player.check(playable_tasks(tasks, 1, config.seed).ids[0])
        self.adapter = None if lora is None else Adapter(model, lora, config.seed)
        self._processes.align(parameter.data for parameter in model.parameters())
        self._reference = None
        if config.beta and self.adapter is None:
            self._reference = copy.deepcopy(model).requires_grad_(False).train(False)
        self._optimizer = MasterAdamW(
            (each for each in model.parameters() if each.requires_grad),
            betas=config.betas,
            weight_decay=config.weight_decay,
        )
        load = Load(
            dtype=dtype,
            adapter_rank=0 if lora is None else lora.r,
            tokens_per_pass=config.tokens_per_pass,
            has_checkpointing=has_checkpointing,
        )
        count = sum(parameter.numel() for parameter in model.parameters())
        self.player.engine.reserved = bytes_of_update(model.config, count, load)
        self._guards, self._faults = Guards(config.guards), FaultLimit(config.steps)
        self._checkpoints = Checkpoints(folder, config.keep, on_save)

    def train(self) -> None:
        """Train up to the last step, from the last checkpoint if there is one.

        Raises:
            TrainingStopped: If the guards ended the run. The message contains the reason and
                advice.
            EnvironmentFault: If the environment keeps failing.
            ConfigurationError: If the checkpoint belongs to a different model, different tasks or a
                different seed.
        """
        config, saved = self._config, self._saved_steps()
        if saved:
            self._resume(saved[-1])
        else:
            self._save()
        last_saved = self.step
        with closing(self._optimizer):
            while (held_out := self._held_out()) is not None and self.step < config.steps:
                began = time.perf_counter()
                rollouts, played, metrics = self.sample()
                metrics["rollout_seconds"] = time.perf_counter() - began
                episodes = [each.episode for each in played if each.episode is not None]
                samples = self.advantages(rollouts)
                reference = self.reference_log_probs(samples)
                for update in range(min(config.updates_per_batch, config.steps - self.step)):
                    if update:  # metrics of the rollouts are reported with the first update only
                        metrics, episodes, held_out = {}, [], {}
                    decision = self._update(samples, reference, metrics, held_out)
                    if self._processes.is_main:
                        for line in decision.log_lines:
                            _logger.warning("%s", line)
                        self._on_step(self.step, recorded(metrics), episodes)
                    if decision.action is Action.STOP:
                        raise TrainingStopped(self.step, decision.diagnosis)
                    if decision.action is Action.ROLL_BACK:
                        self._roll_back(decision.reasons)
                        last_saved = -config.save_every  # save now, to resume from these weights
                    if not decision.update:  # the next update would have the same gradient
                        break
                if self.step - last_saved >= config.save_every or self.step >= config.steps:
                    self._save()
                    last_saved = self.step
            if last_saved < self.step:
                self._save()

    def _update(
        self,
        samples: Sequence[Sample],
        reference: Sequence[Tensor] | None,
        metrics: dict[str, float],
        held_out: Mapping[str, float],
    ) -> Decision:
        """Compute the gradient, make the update unless the guards skip it, and add its metrics."""
        began, is_fresh = time.perf_counter(), bool(metrics)
        self.step += 1
        metrics |= self.gradient(samples, reference)
        if not is_fresh:  # the weights have changed since the rollouts were sampled
            metrics.pop("mismatch", None)
        norm, broken = self._optimizer.norm()
        metrics["grad_norm"] = float(norm)
        metrics["nonfinite_gradients"] = float(broken)
        metrics["nonfinite_weights"] = float(self._optimizer.nonfinite_weights())
        decision = self._guards.observe(self.step, {**metrics, **held_out})
        rate = self.learning_rate() * decision.learning_rate_scale
        if decision.update:
            self._optimizer.step(rate, norm, self._config.max_grad_norm)
        else:
            self._optimizer.discard()
        metrics |= self._guards.metrics()
        metrics["learning_rate"] = rate
        metrics["update_seconds"] = time.perf_counter() - began
        metrics["peak_memory"] = peak_memory(self._model.device)
        return decision

    def sample(self) -> tuple[list[Rollout], list[Rollout], dict[str, float]]:
        """Play the rollouts of a batch. Dynamic sampling replaces dead groups.

        Returns:
            The rollouts of this process that are in the loss, all rollouts that it played, and
            metrics over the rollouts of all processes.
        """
        config, processes, step = self._config, self._processes, self.step + 1
        prompts, size = processes.share_of(config.prompts), config.group_size
        played: list[Rollout] = []

        def play_groups(count: int) -> list[list[Rollout]]:
            """Play one group for each of the next tasks."""
            first = len(played) // size
            rollouts = []
            for number, task in enumerate(self._tasks.take(count), first):
                group = processes.size * number + processes.rank
                task_id, name = self._task_ids[task], f"{config.seed}-{step}-{group}"
                # Other draws at each visit of a task.
                seed = seed_of_try(config.seed, task_id, step)
                rollouts += [Rollout(task_id, group, f"{name}-{m}", seed) for m in range(size)]
            max_tokens, temperature = config.max_completion_length, config.temperature
            with self.adapter.merged() if self.adapter is not None else nullcontext():
                self.player.play(rollouts, max_tokens=max_tokens, temperature=temperature)
            if config.control is not None:
                shuffle_rewards(rollouts, f"{config.seed}-{step}-{first}")
            played.extend(rollouts)
            return [rollouts[start : start + size] for start in range(0, len(rollouts), size)]

        sampling: dict[str, float] = {}
        if config.max_draws is None:
            groups = [
                group
                for group in play_groups(prompts)
                if any(is_in_loss(each, config.learn_from_unfinished) for each in group)
            ]
        else:
            filled = fill(
                prompts,
                config.max_draws,
                play_groups,
                lambda group: outcomes(group, config.learn_from_unfinished),
                lambda tally: processes.gather([tally]),
            )
            groups, sampling = filled.live, processes.sum_of(filled.metrics)
            sampling["sampling_rounds"] /= processes.size  # every process has the same number
        rows = [(each.figures, each.reward, each.group, each.fault) for each in played]
        figures, rewards, group_ids, faults = zip(*processes.gather(rows), strict=True)
        self._faults.note(step, len(faults), [fault for fault in faults if fault])
        metrics = batch_metrics(figures, rewards, group_ids) | sampling
        return [rollout for group in groups for rollout in group], played, metrics

    def advantages(self, rollouts: Sequence[Rollout]) -> list[Sample]:
        """Estimate advantages over all processes, and return the samples of this process.

        A rollout that ran out of tokens is included in the mean of its group, even if it is not in
        the loss.
        """
        processes = self._processes
        own = [(each.reward, each.group, each.turn_rewards) for each in rollouts]
        gathered = processes.gather(own)
        if not gathered:
            return []
        rewards, groups, turns = zip(*gathered, strict=True)
        rows = [torch.tensor(row, dtype=torch.float64) for row in turns]
        values = advantages(  # [N], or [N, S] for turns
            self._config.advantages,
            torch.tensor(rewards, dtype=torch.float64),  # [N]
            torch.tensor(groups),  # [N]
            turn_rewards=pad_sequence(rows, batch_first=True),  # [N, S]
            taken=pad_sequence([torch.ones_like(row) for row in rows], batch_first=True).bool(),
            limit=self._config.advantage_limit,
        )
        offset = sum(processes.gather([len(own)])[: processes.rank])
        samples = []
        for rollout, value in zip(rollouts, values[offset:], strict=False):
            if not is_in_loss(rollout, self._config.learn_from_unfinished):
                continue
            tokens = rollout.tokens
            lengths = torch.tensor([end - start for start, end in tokens.turns])
            per_turn = value.expand(len(lengths)) if value.dim() == 0 else value[: len(lengths)]
            learn = (*[False] * len(tokens.prompt), *map(bool, tokens.mask))
            text = Example((*tokens.prompt, *tokens.tokens), learn)
            old_log_probs = torch.tensor(tokens.log_probs)[torch.tensor(tokens.mask).bool()]
            samples.append(Sample(text, old_log_probs, per_turn.float().repeat_interleave(lengths)))
        return samples

    @torch.no_grad()
    def reference_log_probs(self, samples: Sequence[Sample]) -> list[Tensor] | None:
        """Return, for each sample, the log-probabilities [m] of its tokens under the reference.

        The reference is the model before training: a copy of it, or the model without its adapter.
        The result is None if there is no KL penalty.
        """
        if not self._config.beta:
            return None
        adapter, results = self.adapter, dict[int, Tensor]()
        with nullcontext(self._reference) if adapter is None else adapter.disabled() as model:
            for indices, texts in self._passes(samples):
                values, _ = token_log_probs(model, texts, temperature=self._config.temperature)
                lengths = [len(samples[index].old_log_probs) for index in indices]
                results |= zip(indices, torch.split(values, lengths), strict=True)
        return [results[index] for index in range(len(samples))]

    def gradient(
        self, samples: Sequence[Sample], reference: Sequence[Tensor] | None
    ) -> dict[str, float]:
        """Compute the gradient of the loss over the samples of all processes.

        Returns:
            The metrics of the loss, over all processes.
        """
        config, device = self._config, self._model.device
        counts = self._processes.sum_of(
            {"rollouts": len(samples), "tokens": sum(len(each.old_log_probs) for each in samples)}
        )
        totals = Totals(counts["rollouts"], counts["tokens"], config.max_completion_length)
        self._model.train(bool(config.gradient_checkpointing))  # checkpointing needs training mode
        sums: dict[str, Tensor] = {}
        for indices, texts in self._passes(samples):
            log_probs, entropy = token_log_probs(  # [M], [M]
                self._model,
                texts,
                temperature=config.temperature,
                entropy=config.entropy_bonus > 0,
            )
            chosen = [samples[index] for index in indices]
            lengths = torch.tensor([len(each.old_log_probs) for each in chosen])
            batch = Pass(
                log_probs,
                moved(torch.cat([each.old_log_probs for each in chosen]), device),
                moved(torch.cat([each.advantages for each in chosen]), device),
                moved(torch.arange(len(chosen)).repeat_interleave(lengths), device),
            )
            loss, metrics = policy_loss(
                batch,
                config,
                totals,
                reference=None if reference is None else torch.cat([reference[i] for i in indices]),
                entropy=entropy,
            )
            loss.backward()  # type: ignore[no-untyped-call]
            for name, value in {"loss": loss.detach(), **metrics}.items():
                sums[name] = sums.get(name, 0.0) + value
        self._model.train(False)
        self._processes.add_up(self._optimizer.gradients)
        summed = self._processes.sum_of({name: float(value) for name, value in sums.items()})
        return {**summed, "learnt_tokens": totals.tokens}

    def _passes(self, samples: Sequence[Sample]) -> Iterator[tuple[list[int], list[Example]]]:
        """Return the indices and sequences of the samples of each forward pass."""
        texts = [sample.text for sample in samples]
        for indices in passes(texts, self._config.tokens_per_pass, self._model):
            yield indices, [texts[index] for index in indices]

    def learning_rate(self) -> float:
        """Return the scheduled learning rate of the current step, computed as in transformers.

        Skipped updates count as steps, so linear and cosine decay reach 0 at the last step.
        """
        config, made, warmup = self._config, self.step - 1, self._config.lr_warmup_steps
        if made < warmup:
            return config.learning_rate * made / warmup
        progress = (made - warmup) / max(config.steps - warmup, 1)
        cosine = (1 + math.cos(math.pi * progress)) / 2
        decay = {"constant": 1.0, "linear": 1 - progress, "cosine": cosine}[config.lr_decay]
        return config.learning_rate * decay

    # Checkpoints ----------------------------------------------------------------------------------

    def _roll_back(self, reasons: Sequence[str]) -> None:
        """Restore the weights and the optimizer from the last healthy checkpoint.

        The step count, the learning-rate schedule and the task order continue. Rollouts are seeded
        with their step, so the batch that caused the roll-back is not sampled again.

        Raises:
            TrainingStopped: If there is no healthy checkpoint.
        """
        step = self._guards.choose_snapshot(self._saved_steps())
        if step is None:
            cure = "Lower save_every or raise keep, or start again with more supervised steps."
            raise TrainingStopped(self.step, no_snapshot_message(self.step, reasons, cure))
        self._load(step)
        if self._processes.is_main:
            _logger.warning("%s", rollback_message(self.step, step))

    def _save(self) -> None:
        state = {
            "tasks": self._tasks.state_dict(),
            "guards": self._guards.state_dict(),
            "faults": self._faults.state_dict(),
        }
        if self._processes.is_main:
            self._checkpoints.save(
                self.step,
                self.adapter or self._model,
                self._tokenizer,
                self._optimizer.state_dict(),
                state,
                self._guards.healthy_steps,
            )
        self._processes.wait()

    def _load(self, step: int) -> dict[str, Any]:
        """Load the weights and the optimizer of a checkpoint, and return the rest of its state."""
        tensors, state = self._checkpoints.load(step, self.adapter or self._model)
        self._optimizer.load_state_dict(tensors)
        self._processes.wait()  # process 0 may remove this checkpoint next
        return state

    def _resume(self, step: int) -> None:
        state = self._load(step)
        self._tasks.load_state_dict(state["tasks"])
        self._guards.load_state_dict(state["guards"])
        self._faults.load_state_dict(state["faults"])
        self.step = step

    def _saved_steps(self) -> list[int]:
        """Return the steps with a complete checkpoint, listed by process 0."""
        return self._processes.from_main(self._checkpoints.steps)

    def _held_out(self) -> Mapping[str, float] | None:
        """Return the result of `evaluate`, which is called in process 0."""
        return self._processes.from_main(lambda: self._evaluate(self.step, self.adapter))
