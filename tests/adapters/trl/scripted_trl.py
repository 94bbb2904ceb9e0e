"""The real trainer of TRL, in which only the words of the model come from a script."""

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import TrainerCallback
from trl import GRPOTrainer

from toolgym import registration
from toolgym.messages import prompt_messages

NOTES = "trl-tests/Notes-v0"
END = "<|im_end|>"
SETTINGS: dict[str, Any] = {
    "per_device_train_batch_size": 4,
    "num_generations": 4,
    "max_completion_length": 400,
    "max_steps": 1,
    "learning_rate": 1e-3,
    "disable_tqdm": True,
}


def call(name: str, **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>{END}"


class Scripted(GRPOTrainer):
    """Says what the script says: one list of turns per rollout, then "done"."""

    script: Callable[[int, list[dict[str, Any]]], list[list[str]]]
    in_loop = False
    batches = 0

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Any:
        self.batches += 1
        self.turns = [iter(turns) for turns in self.script(self.batches, inputs)]
        self.generated: list[int] = []
        self.output = super()._generate_and_score_completions(inputs)
        return self.output

    def _generate(self, prompts: list[Any]) -> Any:
        self.prompts = prompts
        return super()._generate(prompts)

    def _tool_call_loop(self, *args: Any, **kwargs: Any) -> Any:
        self.in_loop = True
        try:
            self.outcome = super()._tool_call_loop(*args, **kwargs)
        finally:
            self.in_loop = False
        return self.outcome

    def _generate_single_turn(self, prompt_ids: list[list[int]], *args: Any, **kwargs: Any) -> Any:
        if not self.in_loop:
            self.last = [list(ids) for ids in prompt_ids]
            speakers = list(range(len(prompt_ids)))
        else:
            speakers = self._speakers(prompt_ids)
        self.generated.append(len(speakers))
        turns = []
        for ids, speaker in zip(prompt_ids, speakers, strict=True):
            text = next(self.turns[speaker], f"done{END}")
            said = self._tokenizer(text, add_special_tokens=False)["input_ids"]
            turns.append(said[: self.max_completion_length])
            self.last[speaker] = list(ids) + turns[-1]
        return turns, None

    def _speakers(self, prompt_ids: list[list[int]]) -> list[int]:
        found: list[int] = []
        for ids in prompt_ids:
            begun = [
                i for i, last in enumerate(self.last) if i not in found and ids[: len(last)] == last
            ]
            found.append(max(begun, key=lambda i: len(self.last[i])))
        return found


def prompt_text(tokenizer: Any, env_id: str = NOTES) -> str:
    """What a model is told of an environment, for a tokenizer that is to find few tokens in it."""
    env = registration.make(env_id)
    env.reset(seed=0)
    shown = prompt_messages(env), env.tool_schemas()
    text: str = tokenizer.apply_chat_template(shown[0], tools=shown[1], tokenize=False)
    return text


def always(*rollouts: Sequence[str]) -> Any:
    return lambda batch, inputs: [list(turns) for turns in rollouts]


def logged(trainer: GRPOTrainer, key: str) -> list[float]:
    return [entry[key] for entry in trainer.state.log_history if "loss" in entry and key in entry]


class Recorder(TrainerCallback):
    """Keeps weights, optimizer and schedule after each step; 0 is before the first."""

    def __init__(self) -> None:
        self.weights: list[dict[str, Any]] = []
        self.optimizer: list[dict[str, Any]] = []
        self.schedule: list[dict[str, Any]] = []

    def note(self, kwargs: dict[str, Any]) -> None:
        model = kwargs["model"]
        self.weights.append({n: p.detach().clone() for n, p in model.named_parameters()})
        self.optimizer.append(copy.deepcopy(kwargs["optimizer"].state_dict()))
        self.schedule.append(copy.deepcopy(kwargs["lr_scheduler"].state_dict()))

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.note(kwargs)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.note(kwargs)

    def moved(self, step: int, since: int | None = None) -> float:
        """The largest change of a weight from one step to another."""
        before = self.weights[step - 1 if since is None else since]
        after = self.weights[step]
        return max(float((after[name] - before[name]).abs().max()) for name in after)


def same(one: Any, other: Any) -> bool:
    """Whether two states agree to the last bit."""
    if isinstance(one, torch.Tensor):
        return bool(torch.equal(one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def recorded(trainer: Any) -> Recorder:
    """Watch a trainer, after everything that it does itself."""
    recorder = Recorder()
    trainer.add_callback(recorder)
    return recorder
