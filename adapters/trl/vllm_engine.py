"""`VllmEngine` continues token sequences with the vLLM of a `GRPOTrainer`.

The engine samples with `trainer.vllm_generation`, which TRL creates if `use_vllm=True`. TRL updates
the weights in vLLM before it requests rollouts. TRL 1.16 supports vLLM 0.22 to 0.31.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from accelerate.utils import gather_object

from toolgym.generation import Engine, Generation, Reply


class VllmEngine(Engine):
    """An engine that generates one turn of all sequences at a time with vLLM.

    In server mode and with tensor parallelism, calls are collective: all processes must make the
    same number of calls with the same number of prompts. Therefore each process pads its list of
    prompts to the length of the longest list in any process, and continues until no process has
    sequences left.

    Temperature and sampling settings are those of the trainer's config. Sampling in vLLM is not
    seeded by rollout, so two runs with the same seed differ.

    Args:
        trainer: A `GRPOTrainer` with `use_vllm=True`.
        filler: The token of the prompts that are added as padding.
    """

    def __init__(self, trainer: Any, filler: int) -> None:
        super().__init__(trainer.model, stop=())
        self._trainer, self._filler = trainer, filler

    def generate(
        self,
        generations: Sequence[Generation],
        reply: Reply | None = None,
        *,
        temperature: float = 1.0,
        turn_tokens: int | None = None,
    ) -> None:
        """Generate until each generation has ended or is at its limit; see `Engine.generate`."""
        longest = self._trainer.args.vllm_max_model_length
        for each in generations:
            if longest is not None:
                each.max_tokens = min(each.max_tokens, longest - len(each.prompt))
        active = [each for each in generations if each.max_tokens > 0]
        while most := max(gather_object([len(active)])):
            prompts = [each.prompt + each.tokens for each in active]
            prompts += [[self._filler]] * (most - len(prompts))
            _, turns, log_probs, _ = self._trainer.vllm_generation.generate(
                prompts=prompts, images=None, num_generations=1
            )
            for each, turn, values in zip(active, turns, log_probs, strict=False):
                begin = len(each.tokens)
                room = each.max_tokens - begin
                room = room if turn_tokens is None else min(room, turn_tokens)
                each.tokens += turn[:room]
                each.mask += [1] * len(turn[:room])
                # vLLM has several values per token. The first is that of the sampled token, or None
                # for nan.
                own = [value[0] for value in values[:room]]
                each.log_probs += [math.nan if value is None else value for value in own]
                each.turns.append((begin, len(each.tokens)))
            answers = reply(active) if reply is not None and active else [None] * len(active)
            going = []
            for each, answer in zip(active, answers, strict=True):
                if answer is None:
                    continue
                each.tokens += answer
                each.mask += [0] * len(answer)
                each.log_probs += [0.0] * len(answer)
                going.append(each)
            active = going
