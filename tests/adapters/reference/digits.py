"""An environment of one digit, a small model that knows how to call, and trainers of it."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from toolgym import Task, TaskSet, ToolEnv, tool

DIGITS = "reference-tests/Digits-v0"
SETTINGS: dict[str, Any] = {
    "steps": 4,
    "group_size": 4,
    "prompts": 2,
    "max_completion_length": 40,
    "learning_rate": 1e-3,
    "save_every": 2,
    "guards": {"only_warn": True},
    "max_draws": None,
}
"""A short run in which every rollout counts."""


class DigitEnv(ToolEnv[Task]):
    """Say a digit that is to be guessed."""

    def __init__(self, size: int = 5, **options: Any) -> None:
        tasks = [Task(f"d-{i}", f"Which digit? ({i})") for i in range(size)]
        super().__init__(TaskSet(tasks, name="digits"), **{"step_limit": 3, **options})

    def begin(self, task: Task) -> str:
        return task.question

    @tool
    def warmer(self, value: int) -> str:
        """Ask whether a digit is near.

        Args:
            value: A digit.
        """
        self.reach(1.0 - abs(value - 7) / 9)
        return "warm" if abs(value - 7) < 2 else "cold"

    @tool(terminal=True)
    def answer(self, value: int) -> str:
        """Submit the digit.

        Args:
            value: A digit.
        """
        return self.submit(value == 7)


if DIGITS not in gym.registry:
    gym.register(id=DIGITS, entry_point=DigitEnv)


def save_beginner(folder: Path) -> None:
    """A folder with a model that writes calls with random digits."""
    import torch

    from adapters.tiny.model import TinySize, build_model
    from adapters.tiny.tokenizer import train_tokenizer
    from adapters.training.models.token_log_probs import token_log_probs
    from adapters.training.models.tokenized_examples import examples_of
    from toolgym.messages import episode_messages

    env, draw, transcripts = DigitEnv(), random.Random(0), []
    for number in range(150):
        env.reset(options={"task_id": f"d-{number % 5}"})
        for name in ["warmer", "answer"][number % 2 :]:
            env.step({"name": name, "arguments": {"value": draw.randrange(10)}})
        transcripts.append(episode_messages(env))
    tokenizer = train_tokenizer(transcripts, 400)
    model = build_model(tokenizer, size=TinySize(hidden=64, heads=2, feed_forward=96))
    examples = [e for t in transcripts for e in examples_of(t, env.tool_schemas(), tokenizer)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(40):
        log_probs, _ = token_log_probs(model, draw.sample(examples, 8))
        (-log_probs.mean()).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def speech(tokenizer: Any, stream: str) -> Sequence[int]:
    """Tokens of an episode that the name of a stream decides and nothing else.

    So runs that round differently are told apart by what they learn, not by what they sample.
    """
    import json

    draw = random.Random(stream)
    names = ["warmer", "answer"][draw.randrange(2) :]
    calls = [{"name": each, "arguments": {"value": draw.randrange(6, 9)}} for each in names]
    text = "".join(f"<tool_call>\n{json.dumps(c)}\n</tool_call><|im_end|>" for c in calls)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])
