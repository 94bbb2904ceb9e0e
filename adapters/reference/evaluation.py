"""Evaluations of a run's model, run with the generation engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.play import Player, Rollout
from adapters.training.models.weights import release_memory
from adapters.training.runs.evaluations import SEED, Evaluation
from adapters.training.runs.progress import ProgressListener
from adapters.training.settings import TrainSettings
from toolgym import records
from toolgym.errors import EnvironmentFault
from toolgym.generation import Engine
from toolgym.records import EpisodeRecord
from toolgym.tries import seed_of_try, tries_of


class Evaluator:
    """A player that runs evaluation tasks with the model of a run.

    An episode ends unanswered after 4,096 tokens, or after four times `max_completion_length` if
    that is larger. On a CPU, a pretrained model plays the same number of episodes in parallel as in
    a training step.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        settings: TrainSettings,
        watch: ProgressListener,
    ) -> None:
        self._model, self._tokenizer, self._settings = model, tokenizer, settings
        self._watch = watch
        self._engine: Engine | None = None  # made once, since it records the kernels of the model

    def play(
        self, evaluation: Evaluation, task_ids: Sequence[str], when: str
    ) -> records.Evaluation:
        """Play each task of an evaluation the number of times that the evaluation specifies.

        Args:
            when: `before`, `after` or a step, which is shown in the progress display.

        Raises:
            ConfigurationError: If the chat template cannot be used.
            EnvironmentFault: If an environment failed before its episode began.
        """
        settings = self._settings
        has_room = settings.is_tiny or self._model.device.type == "cuda"
        slots = 256 if has_room else settings.group_size * settings.prompts
        model, tokenizer, kwargs = self._model, self._tokenizer, evaluation.env_kwargs
        player = Player(model, tokenizer, settings.env_id, kwargs, slots=slots, engine=self._engine)
        if self._engine is None:
            player.check(task_ids[0], with_model=False)
            self._engine = player.engine
        release_memory()
        tries = tries_of(task_id for task_id in task_ids for _ in range(evaluation.tries))
        played: list[EpisodeRecord] = []
        with self._watch.phase(f"{evaluation.name}, {when}", len(tries)) as advance:
            while chunk := tries[len(played) : len(played) + 2 * player.engine.slots]:
                stream = f"evaluation-{settings.seed}"
                rollouts = [
                    Rollout(task, 0, f"{stream}-{number}", seed_of_try(SEED, task, number))
                    for task, number in chunk
                ]
                player.play(
                    rollouts,
                    max_tokens=max(4096, 4 * settings.max_completion_length),
                    temperature=evaluation.temperature,
                    turn_tokens=settings.max_new_tokens,
                )
                for rollout, (_, number) in zip(rollouts, chunk, strict=True):
                    if rollout.episode is None:
                        raise EnvironmentFault(rollout.fault)
                    played.append(replace(rollout.episode, seed=rollout.seed, number=number))
                advance(len(played), "")
        player.engine.release()  # the training needs the memory
        release_memory()
        refused = tuple(each.to_json() for each in player.env.tasks.refused.values())
        return records.Evaluation(tuple(played), evaluation.tries, refused)
