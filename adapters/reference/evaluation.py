"""Evaluations that are played as rollouts are: all episodes together, over one KV cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.play import Player, Rollout
from adapters.training.models.memory_needs import bytes_of_rollout, shape_of
from adapters.training.models.released_memory import release_memory
from adapters.training.runs.playing import MEASURED_ON, Asked, Done, play_turn_by_turn
from adapters.training.runs.settings import TrainSettings
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.generation import context_length
from toolgym.records import EpisodeRecord
from toolgym.tries import seed_of_try, tries_of

_SLOTS: Final = 256
_MEMORY: Final = 2**32  # bytes of keys and values, unless the weights take more
_LONGEST: Final = 2**20  # tokens of a completion, where the model names no limit


class BatchPlay:
    """Plays the tasks of evaluations with the generation engine.

    A model or a chat template that the engine cannot use is played turn by turn.
    """

    def __init__(self) -> None:
        self._fits: bool | None = None  # not known yet

    def __call__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        settings: TrainSettings,
        asked: Asked,
        done: Done,
    ) -> list[EpisodeRecord]:
        """One record for each of `asked.repeated`, in order.

        Raises:
            EnvironmentFault: An environment failed before its episode began.
        """
        if self._fits is None:
            try:
                Player(model, tokenizer, settings.env_id, asked.env_kwargs).check(asked.task_ids[0])
                self._fits = True
            except ConfigurationError:
                self._fits = False
        if not self._fits:
            return play_turn_by_turn(model, tokenizer, settings, asked, done)
        release_memory()
        player = Player(model, tokenizer, settings.env_id, asked.env_kwargs)
        slots = _slots(player, asked.task_ids[0], settings.max_new_tokens)
        player = Player(model, tokenizer, settings.env_id, asked.env_kwargs, slots=slots)
        tries = tries_of(asked.repeated)
        records: list[EpisodeRecord] = []
        for start in range(0, len(tries), 2 * slots):
            part = tries[start : start + 2 * slots]
            stream = f"evaluation-{settings.seed}"
            rollouts = [Rollout(task_id, 0, f"{stream}-{number}") for task_id, number in part]
            player.play(
                rollouts,
                max_tokens=min(context_length(model), _LONGEST),
                temperature=asked.temperature,
                turn_tokens=settings.max_new_tokens,
            )
            for rollout, (task_id, number) in zip(rollouts, part, strict=True):
                if rollout.episode is None:
                    raise EnvironmentFault(rollout.fault)
                seed = seed_of_try(MEASURED_ON, task_id, number)
                records.append(replace(rollout.episode, seed=seed, number=number))
            done(len(records))
        return records


def _slots(player: Player, task_id: str, turn_tokens: int) -> int:
    """The number of rollouts whose keys and values fit, even if each uses all of its calls.

    Prompts are taken to be up to twice as long as the first one, and tool results as long as turns.
    """
    shape = shape_of(player.model.config)
    if shape is None:
        return 32
    turns = 2 * turn_tokens * (player.env.step_limit + 1)
    tokens = min(2 * player.check(task_id) + turns, context_length(player.model))
    weights: int = sum(parameter.nbytes for parameter in player.model.parameters())
    each = bytes_of_rollout(shape, tokens, player.model.dtype.itemsize)
    return min(_SLOTS, max(1, max(_MEMORY, weights) // each))
