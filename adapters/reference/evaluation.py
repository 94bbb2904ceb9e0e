"""Evaluations played as rollouts are: all episodes advance together over one KV cache.

A transcript is read once, and not anew with every turn; what all prompts begin with (the system's
message and the tools) is read once for the whole batch; prompts that begin alike share a batch; and
an episode that is over gives up its place at once. A model or a template that the cache does not
fit, and the tiny model, whose published figures were measured turn by turn, are played so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.chat import check_template
from adapters.reference.decoder import check_model
from adapters.reference.generation import Player, PlaySettings
from adapters.reference.rollout import Request
from adapters.training.models.memory_needs import bytes_of_rollout, shape_of
from adapters.training.models.released_memory import release_memory
from adapters.training.runs.playing import MEASURED_ON, Asked, Done, play_turn_by_turn
from adapters.training.runs.settings import TrainSettings
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.generation import context_length
from toolgym.records import EpisodeRecord
from toolgym.tasks import seed_of
from toolgym.tries import seed_of_try, tries_of

_MOST = 256  # episodes that are played together
_UNKNOWN = 32  # where the model's config does not say what they take
_MEMORY: Final = 2**32  # bytes of their keys and values, unless the weights take more
_LONGEST: Final = 2**20  # of a completion, where the model names no limit


class BatchPlay:
    """Plays the tasks of evaluations in batches, where the model allows it.

    Args:
        at_once: Episodes that are played together at most. Fewer are if their keys and values are
            expected to take more than 4 GiB, or than the weights.
    """

    def __init__(self, at_once: int = _MOST) -> None:
        self._at_once = at_once
        self._fits: bool | None = None

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
        if settings.is_tiny or self._fits is False:
            return play_turn_by_turn(model, tokenizer, settings, asked, done)
        player = self._player(model, tokenizer, settings, asked)
        if player is None:
            return play_turn_by_turn(model, tokenizer, settings, asked, done)
        return play_in_batches(player, asked, settings.seed, done)

    def _player(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        settings: TrainSettings,
        asked: Asked,
    ) -> Player | None:
        """The player; None where model or template are of another kind, which is tried once."""
        how = PlaySettings(
            temperature=asked.temperature,
            max_tokens=min(context_length(model), _LONGEST),
            turn_tokens=settings.max_new_tokens,
            at_once=self._at_once,
        )
        try:
            player = Player(model, tokenizer, settings.env_id, asked.env_kwargs, how)
            if self._fits is None:
                player.env.reset(options={"task_id": asked.task_ids[0]})
                check_model(model)
                check_template(model, tokenizer, player.env)
        except ConfigurationError:
            self._fits = False
            return None
        self._fits = True
        return player


def play_in_batches(player: Player, asked: Asked, seed: int, done: Done) -> list[EpisodeRecord]:
    """Play the tasks, those whose prompts begin alike together, and return them in order.

    Raises:
        EnvironmentFault: An environment failed before its episode began.
    """
    tries = tries_of(asked.repeated)
    requests = [Request(task_id, 0, f"evaluation-{seed}-{number}") for task_id, number in tries]
    prompts = _prompts(player, asked.task_ids)
    texts = [prompts[request.task_id] for request in requests]
    records: dict[int, EpisodeRecord] = {}
    for places in batches(texts, _fitting(player, max(map(len, texts)))):
        release_memory()
        rollouts = player.play([requests[place] for place in places])
        for place, played in zip(places, rollouts, strict=True):
            if played.episode is None:
                raise EnvironmentFault(played.fault)
            task_id, number = tries[place]
            own = seed_of_try(MEASURED_ON, task_id, number)
            records[place] = replace(played.episode, seed=own, number=number)
        done(len(records))
    return [records[place] for place in range(len(tries))]


def _fitting(player: Player, longest: int) -> int:
    """The number of episodes whose keys and values fit, even if each uses all of its calls.

    The result of a tool is taken to be as long as a turn may be.
    """
    model, shape = player.model, shape_of(player.model.config)
    if shape is None:
        return min(player.settings.at_once, _UNKNOWN)
    turn = 2 * (player.settings.turn_tokens or longest)
    tokens = min(longest + (player.env.step_limit + 1) * turn, player.settings.max_tokens)
    each = bytes_of_rollout(shape, tokens, model.dtype.itemsize)
    memory: int = max(_MEMORY, sum(parameter.nbytes for parameter in model.parameters()))
    return min(player.settings.at_once, max(1, memory // each))


def batches(prompts: Sequence[Sequence[int]], most: int) -> Iterator[list[int]]:
    """Divide prompts into batches in which all begin alike, as far as that is worth a batch.

    A batch that is at least half full ends early where the next prompt has less than half in common
    with its last, as on another database.

    Yields:
        Places in `prompts`.

    >>> list(batches(["abc1", "xyz1", "abc2", "xyz2", "abc3"], most=4))
    [[0, 2, 4], [1, 3]]
    >>> list(batches(["abc1", "xyz1", "abc2", "xyz2", "abc3"], most=8))
    [[0, 2, 4, 1, 3]]
    """
    batch: list[int] = []
    for place in sorted(range(len(prompts)), key=lambda place: tuple(prompts[place])):
        if batch:
            half = len(prompts[place]) // 2
            is_other = prompts[batch[-1]][:half] != prompts[place][:half]
            if len(batch) == most or (is_other and 2 * len(batch) >= most):
                yield batch
                batch = []
        batch.append(place)
    if batch:
        yield batch


def _prompts(player: Player, task_ids: Sequence[str]) -> dict[str, list[int]]:
    """The prompt of each task, in tokens."""
    prompts = {}
    for task_id in task_ids:
        player.env.reset(seed=seed_of(task_id), options={"task_id": task_id})
        (prompts[task_id],) = player.chat.prompts([player.env])
    return prompts
