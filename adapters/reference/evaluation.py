"""Evaluations whose episodes are played together over one KV cache, as rollouts are."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.chat import check_template
from adapters.reference.play import Player, Rollout
from adapters.training.models.memory_needs import bytes_of_rollout, shape_of
from adapters.training.models.weights import release_memory
from adapters.training.runs.playing import MEASURED_ON, Asked, Done, play_turn_by_turn
from adapters.training.runs.settings import TrainSettings
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.generation import Engine, context_length
from toolgym.records import EpisodeRecord
from toolgym.tries import seed_of_try, tries_of

_SLOTS: Final = 256
_MEMORY: Final = 2**32  # bytes of keys and values on a CPU; as many as the weights if they are more


class BatchPlay:
    """Plays the tasks of evaluations with the generation engine.

    An episode ends unanswered after 4,096 tokens, or after four times `max_completion_length` if
    that is more. With a chat template that cannot continue a rollout, episodes are played turn by
    turn.
    """

    def __init__(self) -> None:
        self._engine: Engine | None = None  # for all evaluations of the same model

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
        if self._engine is not None and self._engine.model is not model:
            self._engine = None
        try:
            player = Player(
                model, tokenizer, settings.env_id, asked.env_kwargs, engine=self._engine
            )
            if self._engine is None:
                player.env.reset(options={"task_id": asked.task_ids[0]})
                check_template(model, tokenizer, player.env)
                player.engine.slots = _slots(player, asked.task_ids[0], settings.max_new_tokens)
                self._engine = player.engine
        except ConfigurationError:
            return play_turn_by_turn(model, tokenizer, settings, asked, done)
        release_memory()
        tries = tries_of(asked.repeated)
        records: list[EpisodeRecord] = []
        for start in range(0, len(tries), 2 * _SLOTS):
            chunk = tries[start : start + 2 * _SLOTS]
            stream = f"evaluation-{settings.seed}"
            rollouts = [Rollout(task_id, 0, f"{stream}-{number}") for task_id, number in chunk]
            player.play(
                rollouts,
                max_tokens=max(4096, 4 * settings.max_completion_length),
                temperature=asked.temperature,
                turn_tokens=settings.max_new_tokens,
            )
            for rollout, (task_id, number) in zip(rollouts, chunk, strict=True):
                if rollout.episode is None:
                    raise EnvironmentFault(rollout.fault)
                seed = seed_of_try(MEASURED_ON, task_id, number)
                records.append(replace(rollout.episode, seed=seed, number=number))
            done(len(records))
        player.engine.release()  # training takes its memory
        return records


def _slots(player: Player, task_id: str, turn_tokens: int) -> int:
    """The number of rollouts whose keys and values fit on a CPU, if each uses all of its calls.

    The estimate assumes prompts of twice the length of the first one, and tool results as long as
    turns. On CUDA the engine measures how many fit.
    """
    shape = shape_of(player.model.config)
    if player.model.device.type == "cuda":
        return _SLOTS
    if shape is None:
        return 32
    turns = 2 * turn_tokens * (player.env.step_limit + 1)
    tokens = min(2 * player.prompt_length(task_id) + turns, context_length(player.model))
    weights: int = sum(parameter.nbytes for parameter in player.model.parameters())
    rollout_bytes = bytes_of_rollout(shape, tokens, player.model.dtype.itemsize)
    return min(_SLOTS, max(1, max(_MEMORY, weights) // rollout_bytes))
