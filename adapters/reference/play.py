"""Rollouts: episodes that a model plays in an environment.

A rollout is a list of tokens that is never rendered or encoded again:

    tokens: The prompt (system message and question), turn, result, turn, result, ..., turn.
    mask: 1 for the tokens of turns, which the policy sampled, and 0 for the tokens of results.

The generation engine (`toolgym.generation`) samples the turns, and the environment receives their
text. `adapters.reference.chat` converts the results of the environment to tokens, which are
appended.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.chat import ChatFormat
from adapters.training.algorithms.rollout_metrics import Figures
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.episode import Outcome
from toolgym.errors import EnvironmentFault
from toolgym.generation import Engine, Generation, check_model, context_length
from toolgym.messages import Message, turn_messages
from toolgym.records import EpisodeRecord, Evaluation
from toolgym.tries import seed_of_try


@dataclass(eq=False)
class Rollout:
    """One rollout. `Player.play` sets all attributes except the first four.

    Attributes:
        task_id: Id of a task of the environment.
        group: Group number. Rollouts with the same group number are compared with each other.
        stream: Seed for sampling tokens, combined with the task.
        seed: Seed of the environment's random draws. All members of a group have the same seed, so
            they differ only in the behavior of the model.
        env: The environment that played the rollout.
        tokens: The tokens of prompt and completion, with the mask and the log-probabilities at
            sampling.
        unfinished: Whether the rollout ran out of tokens before the episode was over.
        cut: Whether the rollout ran out of tokens in the middle of a turn.
        fault: Error message if the environment failed, otherwise empty.
        episode: The transcript; None if no episode began.
        reward: Score of the episode; nan if a fault made the episode unscored.
        turn_rewards: Change in the score during each turn. The changes add up to the reward.
    """

    task_id: str
    group: int
    stream: str
    seed: int = 0
    env: Any = None
    tokens: Generation = field(default_factory=lambda: Generation([], "", 0))
    unfinished: bool = False
    cut: bool = False
    fault: str = ""
    episode: EpisodeRecord | None = None
    reward: float = math.nan
    turn_rewards: list[float] = field(default_factory=list)

    @property
    def figures(self) -> Figures:
        """The counts for batch metrics."""
        return Figures.of(
            self.episode,
            written=sum(self.tokens.mask),
            clipped=self.cut,
            unfinished=self.unfinished,
        )


class Player:
    """A player that runs episodes of an environment with a model.

    Args:
        model: The model.
        tokenizer: Tokenizer of the model, with a chat template.
        env_id: Id of a registered environment.
        env_kwargs: Arguments of the environment.
        slots: Maximum number of rollouts in the KV cache at the same time. None means 256 on CUDA
            and 64 on other devices.
        workers: Number of threads that run the tools of different rollouts. The number is always 64
            if the tools wait for a server.
        engine: The engine of another player of the same model, so that both players share the
            memory of the engine, or an engine that generates elsewhere, such as `VllmEngine`.
        template_options: Arguments for the chat template, such as `{"enable_thinking": False}`.

    Raises:
        ConfigurationError: If there is no such environment, or the chat template cannot be used.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        env_id: str,
        env_kwargs: Mapping[str, Any] | None = None,
        *,
        slots: int | None = None,
        workers: int = 8,
        engine: Engine | None = None,
        template_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self._make = functools.partial(registration.make, env_id, **(env_kwargs or {}))
        self._env_id, self._envs = env_id, [self._make()]
        self._chat = ChatFormat(model, tokenizer, self.env, template_options)
        slots = slots or (256 if model.device.type == "cuda" else 64)
        self.engine = engine or Engine(model, stop=self._chat.stop, slots=slots)
        # Environments that wait for servers or share batches are stepped all at once.
        self._threads = ThreadPoolExecutor(64 if self.env.waits else workers)

    @property
    def stop(self) -> frozenset[int]:
        """The tokens that end a turn."""
        return self._chat.stop

    @property
    def env(self) -> ToolEnv[Any]:
        """The first of the player's environments."""
        return self._envs[0]

    def check(self, task_id: str, *, with_model: bool = True) -> None:
        """Check, with the prompt of one task, that the model and the chat template can be used.

        Args:
            task_id: Id of the task.
            with_model: Whether to check the model as well.

        Raises:
            ConfigurationError: If the model or the chat template cannot be used. The message
                contains the reason and advice.
        """
        self.env.reset(options={"task_id": task_id})
        if with_model:
            check_model(self.model)
        self._chat.check(self.env)

    def prompt_length(self, task_id: str) -> int:
        """Return the number of tokens of a task's prompt."""
        self.env.reset(options={"task_id": task_id})
        return len(self._chat.prompts([self.env])[0])

    def play(
        self,
        rollouts: Sequence[Rollout],
        *,
        max_tokens: int,
        temperature: float = 1.0,
        turn_tokens: int | None = None,
    ) -> None:
        """Play the rollouts in parallel.

        Args:
            max_tokens: Maximum number of tokens of a rollout after its prompt, including tool
                results.
            temperature: Sampling temperature; 0 means greedy decoding.
            turn_tokens: Maximum number of tokens of a turn. A longer turn is cut off at this length
                and passed to the environment. None means that only `max_tokens` applies.
        """
        while len(self._envs) < len(rollouts):
            self._envs.append(self._make())
        for rollout, env in zip(rollouts, self._envs, strict=False):
            rollout.env = env
        list(self._threads.map(_reset, rollouts))
        started = [rollout for rollout in rollouts if not rollout.fault]
        tasks = {rollout.task_id: rollout.env for rollout in reversed(started)}
        prompts = dict(zip(tasks, self._chat.prompts(list(tasks.values())), strict=True))
        playing: dict[int, Rollout] = {}
        for rollout in started:
            prompt = prompts[rollout.task_id]
            room = min(max_tokens, context_length(self.model) - len(prompt))
            rollout.tokens = Generation(prompt, f"{rollout.stream}-{rollout.task_id}", room)
            rollout.unfinished = room < 1
            if room >= 1:
                playing[id(rollout.tokens)] = rollout

        def reply(ended: list[Generation]) -> list[list[int] | None]:
            """Step the environments of finished turns, and return the tokens of their results."""
            turns = [playing[id(each)] for each in ended]
            answers = list(self._threads.map(self._step, turns))
            results = iter(self._chat.following([answer for answer in answers if answer]))
            return [
                self._continue(turn, next(results)) if answer else None
                for turn, answer in zip(turns, answers, strict=True)
            ]

        self.engine.generate(
            [rollout.tokens for rollout in playing.values()],
            reply,
            temperature=temperature,
            turn_tokens=turn_tokens,
        )
        for rollout in started:
            episode = rollout.episode = EpisodeRecord.of(rollout.env.episode, self._env_id)
            rollout.reward = episode.score
            rollout.unfinished = rollout.unfinished or not rollout.tokens.turns
            earned = [turn["reward"] for turn in episode.turns]
            earned += [0.0] * (len(rollout.tokens.turns) - len(earned))
            if earned:  # a change of the score at the end of the episode belongs to the last turn
                earned[-1] += episode.score - math.fsum(earned)
            rollout.turn_rewards = earned

    def _step(self, rollout: Rollout) -> list[Message]:
        """Step the environment with a turn and return its reply, empty after the last turn."""
        tokens, (start, end) = rollout.tokens.tokens, rollout.tokens.turns[-1]
        turn = self._chat.response(tokens[start:end], tokens[:start] or rollout.tokens.prompt)
        try:
            rollout.env.step(turn)
        except EnvironmentFault as fault:
            rollout.fault = str(fault)
            return []
        episode = rollout.env.episode
        return [] if episode.over else turn_messages(episode.turns[-1])[1:]

    def _continue(self, rollout: Rollout, result: list[int]) -> list[int] | None:
        """Return the tokens between one turn and the next, or None if they do not fit."""
        tokens, max_tokens = rollout.tokens.tokens, rollout.tokens.max_tokens
        # The turn was cut off, by its own limit or that of the rollout.
        if tokens[-1] not in self._chat.stop:
            rollout.cut = len(tokens) >= max_tokens
            result = [*self._chat.end_of_turn, *result]
        elif result[:1] == tokens[-1:]:
            result = result[1:]  # the turn ended with the opening of the next message
        rollout.unfinished = len(tokens) + len(result) >= max_tokens
        return None if rollout.unfinished else result


def is_in_loss(rollout: Rollout, learn_from_unfinished: bool) -> bool:
    """Return whether a rollout contributes to the loss.

    The rollout must be scored and have at least one turn. Unless `learn_from_unfinished` is True,
    the rollout must also be finished.
    """
    may_learn = learn_from_unfinished or not rollout.unfinished
    return math.isfinite(rollout.reward) and bool(rollout.tokens.turns) and may_learn


def outcomes(group: Sequence[Rollout], learn_from_unfinished: bool) -> list[Outcome | None]:
    """Return the outcomes of a group.

    All outcomes are None if no member is in the loss, so the group is replaced.
    """
    if not any(is_in_loss(rollout, learn_from_unfinished) for rollout in group):
        return [None for _ in group]
    return [each.episode.outcome if each.episode is not None else None for each in group]


def shuffle_rewards(rollouts: Sequence[Rollout], name: str) -> None:
    """Shuffle the rewards of the scored rollouts, for a control run.

    Args:
        rollouts: The rollouts, which are changed in place.
        name: Seed of the shuffled order.
    """
    scored = [each for each in rollouts if math.isfinite(each.reward)]
    rewards = [each.reward for each in scored]
    random.Random(f"toolgym-control-{name}").shuffle(rewards)
    for each, reward in zip(scored, rewards, strict=True):
        each.reward = reward


def _reset(rollout: Rollout) -> None:
    try:
        rollout.env.reset(seed=rollout.seed, options={"task_id": rollout.task_id})
    except EnvironmentFault as fault:
        rollout.fault = str(fault)


def evaluate(player: Player, task_ids: Sequence[str], max_tokens: int) -> Evaluation:
    """Play each task once with greedy decoding, and return the evaluation.

    Raises:
        EnvironmentFault: If an environment failed before its episode began.
    """
    rollouts = [
        Rollout(task_id, 0, "evaluation", seed_of_try(0, task_id, 0)) for task_id in task_ids
    ]
    player.play(rollouts, max_tokens=max_tokens, temperature=0)
    if faults := [each.fault for each in rollouts if each.episode is None]:
        raise EnvironmentFault(faults[0])
    return Evaluation(tuple(each.episode for each in rollouts if each.episode is not None))
