"""Short runs of the reference trainer with everything real, watched step by step.

The environment is a digit that nobody tells, and pays for what a test wants a policy to drift to.
The models have imitated one way of playing it for a second: orderly calls, or two looks before
every answer.
"""

import copy
import functools
import json
import random
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import gymnasium as gym

from adapters.reference.train import ReferenceTrainer
from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import train_tokenizer
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.models.supervised import SftSettings, train_supervised
from adapters.training.models.tokenized_examples import examples_of
from adapters.training.settings import GrpoSettings
from tests.adapters.training.guard_proofs import Run, State, listening, watch
from toolgym import Task, TaskSet, ToolEnv, tool
from toolgym.messages import episode_messages

LOOKS = "guard-tests/Looks-v0"
BUDGET = 3
FREE = dict.fromkeys(("step", "repeat", "failed_call", "repaired_call", "after_end"), 0.0)
"""Rewards under which all that is not right earns exactly the same."""
FREE["unanswered"] = 1e-300


class LooksEnv(ToolEnv[Task]):
    """Say a digit, after looking for it or not."""

    def __init__(
        self,
        right: str = "",
        rich: tuple[str, ...] = (),
        prize: int | None = None,
        **options: Any,
    ) -> None:
        """Right digits, tasks in which those from 5 are right, and the place that is paid for."""
        tasks = [Task(f"d-{number}", f"Which digit? ({number})") for number in range(20)]
        super().__init__(TaskSet(tasks, name="looks"), **{"step_limit": BUDGET, **options})
        self.right, self.rich, self.prize = right, rich, prize

    def begin(self, task: Task) -> str:
        return task.question

    def expert(self) -> Generator[Any, str, None]:
        yield {"name": "look", "arguments": {"place": 1}}
        yield {"name": "look", "arguments": {"place": 2}}
        yield {"name": "answer", "arguments": {"value": int(self.right[:1] or 0)}}

    @tool
    def look(self, place: int) -> str:
        """Look at a place.

        Args:
            place: From 0 to 9.
        """
        self.reach(float(place == self.prize))
        return "nothing"

    @tool(terminal=True)
    def answer(self, value: int) -> str:
        """Submit the digit.

        Args:
            value: A digit.
        """
        digits = "56789" if self.task.id in self.rich else self.right
        return self.submit(str(value) in list(digits))


if LOOKS not in gym.registry:
    gym.register(id=LOOKS, entry_point=LooksEnv)


def _called(name: str, **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


def _turns(manner: str, draw: random.Random) -> list[str]:
    """How one episode is played."""
    thorough = manner == "thorough"
    places = range(BUDGET - 1 if thorough else BUDGET)
    looks = [
        _called("look", place=draw.randrange(10))
        for _ in places
        if thorough or draw.random() < 0.25
    ]
    return [*looks, _called("answer", value=draw.randrange(10))]


@functools.cache
def _imitator(manner: str) -> tuple[Any, Any]:
    """A model that plays in that manner, and its tokenizer."""
    env, draw, transcripts = LooksEnv(), random.Random(0), []
    for number in range(150):
        env.reset(options={"task_id": f"d-{number % 20}"})
        for turn in _turns(manner, draw):
            if not env.episode.over:
                env.step(turn)
        transcripts.append(episode_messages(env))
    tokenizer = train_tokenizer(transcripts, 400)
    model = build_model(tokenizer, size=TinySize(hidden=64, heads=2, feed_forward=96))
    examples = [e for t in transcripts for e in examples_of(t, env.tool_schemas(), tokenizer)]
    train_supervised(model, examples, SftSettings(steps=100, batch=8, learning_rate=1e-2))
    return model, tokenizer


def settings(**options: Any) -> GrpoSettings:
    """A run in which every rollout counts, and which can go back to the end of every step."""
    plain = {
        "steps": 4,
        "group_size": 4,
        "prompts": 2,
        "max_completion_length": 160,
        "learn_from_unfinished": True,
        "max_draws": None,
        "loss": "dapo",
        "learning_rate": 1e-3,
        "save_every": 1,
        "keep": 1000,
        "workers": 1,
    }
    return GrpoSettings.model_validate({**plain, **options})


def train(
    folder: Path,
    *,
    manner: str = "orderly",
    env: dict[str, Any] | None = None,
    harm: Callable[[int, Any], None] = lambda step, model: None,
    enough: Callable[["Run"], bool] = lambda run: False,
    prepare: Callable[[Any], None] = lambda trainer: None,
    **options: Any,
) -> Run:
    """Train to the end, until the guards stop the run, or until a test has seen enough.

    Args:
        folder: For the checkpoints.
        manner: Of the model that it begins with.
        env: Arguments of the environment.
        harm: What happens to the model after a step, as a fault of the machine would.
        enough: Whether to end the run before its next batch.
        prepare: Given the trainer before it begins, to watch it.
        options: Of the trainer's config.
    """
    model, tokenizer = _imitator(manner)
    config = settings(**options)
    run = Run(config.learning_rate)

    def look(step: int, adapter: Any = None) -> dict[str, float] | None:
        weights = {name: value.detach().clone() for name, value in policy.named_parameters()}
        optimizer = trainer._optimizer
        moments = optimizer.state_dict()
        run.states.append(State(weights, copy.deepcopy(moments)))
        return None if enough(run) else {}

    def on_step(step: int, metrics: dict[str, float], episodes: list[Any]) -> None:
        run.told.append(metrics)
        harm(step, policy)

    policy = copy.deepcopy(model)
    trainer: Any = ReferenceTrainer(
        policy, tokenizer, LOOKS, folder, config, env_kwargs=env, on_step=on_step, evaluate=look
    )
    watch(trainer._guards, run)
    prepare(trainer)
    with listening("adapters.reference.train", run):
        try:
            trainer.train()
        except TrainingStopped as stop:
            run.diagnosis = str(stop)
            look(trainer.step)
    return run
