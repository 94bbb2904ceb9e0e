"""How fast the reference trainer is beside TRL's, what each of its tricks gives, what both hold.

Both train the same model on the same tasks with the same batch, one step of the one after one of
the other, in one process; medians of many steps are compared, so the ratio holds on any machine.
The learning rate is next to 0, so that both go on playing as the model did at the start. TRL's is
our `ToolGRPOTrainer` with TRL's own update, so it too ends a rollout with its episode. No rollout
is left out of an update. Memory is measured in a process each.

    python benchmarks/trainers.py [--model runs/NAME/checkpoints/warmup] [--steps 20] [--tricks]

Without `--model` the tiny model is warmed up first, which takes a few minutes. On a GPU, name a
model of a size that belongs there. `OMP_NUM_THREADS` says how many threads compute.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
import transformers
from transformers import TrainerCallback
from transformers.trainer_callback import PrinterCallback

from adapters.reference import generation, learner
from adapters.reference.config import ReferenceConfig, reference_config
from adapters.reference.generation import ActiveSequence, DecodeLoop
from adapters.reference.trainer import ReferenceTrainer
from adapters.training.models.chat_policy import load_model
from adapters.training.runs.preparation import prepare
from adapters.training.runs.progress import NoProgress
from adapters.training.runs.settings import TrainSettings, resolve
from adapters.trl.stable_trainer import build_trainer
from adapters.trl.tool_trainer import ToolGRPOTrainer
from toolgym.runs.run import Run

ENV_ID = "sqlgym/Explore-v0"
STANDS_STILL = 1e-12  # a learning rate
WARM_UP = 3  # steps that are not counted
Times = dict[str, list[float]]


def settings_of(model: str | None, steps: int) -> TrainSettings:
    """The default job: that of the tiny model for it and its like, else that of a chat model."""
    given = {"env_kwargs": {"dataset": "tiny"}, "steps": steps, "learning_rate": STANDS_STILL}
    return resolve(ENV_ID, model=None if model is None or is_tiny(model) else model, **given)


def is_tiny(model: str) -> bool:
    """Whether the model is as small as the one that is built here."""
    return int(json.loads((Path(model) / "config.json").read_text())["hidden_size"]) <= 256


def warmed_up(folder: Path) -> str:
    """A model that has learnt to call tools, as `toolgym train` makes it."""
    run = Run.create(folder / "run", {})
    prepare(settings_of(None, 1), run, NoProgress())
    return str(run.checkpoints / "warmup")


def config_of(settings: TrainSettings, is_on_gpu: bool) -> ReferenceConfig:
    """What `adapters.trl.settings` sets for TRL, in the reference trainer's words."""
    length = settings.max_completion_length
    return reference_config(
        {
            "steps": 10**6,
            "group_size": settings.group_size,
            "prompts": settings.prompts,
            "max_completion_length": length,
            "learning_rate": STANDS_STILL,
            "advantages": "group_centered",
            "advantage_limit": None,
            "learn_from_unfinished": True,
            "sampling": None,
            "loss": {"name": "dr_grpo", "constant_length": length},
            "dtype": "bfloat16" if is_on_gpu else "float32",
            "guards": {"only_warn": True},
            "save_every": 10**6,
        }
    )


def grpo_options(settings: TrainSettings, folder: Path) -> dict[str, Any]:
    """The same in TRL's words; what is not named is in `adapters.trl.settings`."""
    rollouts = settings.group_size * settings.prompts
    at_once = rollouts if settings.is_tiny else settings.group_size
    return {
        "output_dir": str(folder),
        "max_steps": settings.steps,
        "num_generations": settings.group_size,
        "per_device_train_batch_size": at_once,
        "gradient_accumulation_steps": rollouts // at_once,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "constant",
        "adam_beta2": 0.98,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "max_completion_length": settings.max_completion_length,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }


class Clock:
    """Seconds of the parts of a step."""

    def __init__(self) -> None:
        self.times: Times = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time what is done in this context."""
        _wait()
        start = time.perf_counter()
        yield
        _wait()
        self.times.setdefault(name, []).append(time.perf_counter() - start)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Timed(ToolGRPOTrainer):
    """TRL's trainer, with a clock on its rollouts."""

    clock: Clock

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        with self.clock.part("TRL rollout"):
            return super()._generate_and_score_completions(inputs)


class Alternate(TrainerCallback):
    """Times each step of TRL, and does something else between two of them."""

    def __init__(self, clock: Clock, other: Callable[[], None]) -> None:
        self._clock, self._other = clock, other
        self._part: Any = None

    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self._part = self._clock.part("TRL step")
        self._part.__enter__()

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        """Stop it."""
        self._part.__exit__(None, None, None)
        self._other()


def trl_trainer(model: str, settings: TrainSettings, folder: Path, clock: Clock) -> Timed:
    """TRL's trainer with the default job's settings."""
    policy, tokenizer = load_model(model, for_training=True)
    trainer: Any = build_trainer(
        policy,
        tokenizer,
        ENV_ID,
        env_kwargs=settings.training_kwargs,
        config=grpo_options(settings, folder),
        trainer_class=Timed,
    )
    trainer.clock = clock
    trainer.remove_callback(PrinterCallback)
    return trainer  # type: ignore[no-any-return]


class Stepper:
    """The reference trainer, a step at a time."""

    def __init__(self, model: str, settings: TrainSettings, folder: Path, clock: Clock) -> None:
        policy, tokenizer = load_model(model, for_training=True)
        config = config_of(settings, policy.device.type == "cuda")
        kwargs = settings.training_kwargs
        self._trainer: Any = ReferenceTrainer(
            policy, tokenizer, ENV_ID, folder, config, env_kwargs=kwargs, on_metrics=self._note
        )
        self._clock = clock
        self.metrics: list[dict[str, float]] = []

    def _note(self, step: int, numbers: dict[str, float]) -> None:
        self.metrics.append(numbers)

    def step(self, name: str = "reference") -> None:
        """One batch played, one update made."""
        with self._clock.part(f"{name} step"):
            with self._clock.part(f"{name} rollout"):
                played = self._trainer._batch_sampler.sample(self._trainer.step + 1)
            self._trainer._update_from(played, 0.0)


# What the tricks are held against ------------------------------------------------------------


class ResultsByToken(DecodeLoop):
    """Results of tools are read like generated tokens, one in each pass."""

    def _step_environments(self, workers: Any) -> None:
        feed, self._decoder.feed = self._decoder.feed, lambda *arguments: None  # type: ignore
        lengths = [(sequence, sequence.cached_length) for sequence in self._slots[self._active :]]
        super()._step_environments(workers)
        self._decoder.feed = feed  # type: ignore[method-assign]
        for sequence, before in lengths:
            if sequence.ending is None:
                tokens = [*sequence.prompt, *sequence.completion]
                sequence.pending_tokens = tokens[before:]

    def _decode_step(self) -> None:
        behind = [len(s.pending_tokens) > 1 for s in self._slots[: self._active]]
        if not any(behind):
            return super()._decode_step()
        sequences = self._slots[: self._active]
        self._decoder.feed(
            0, [s.pending_tokens[:1] for s in sequences], [s.cached_length for s in sequences]
        )
        for sequence in sequences:
            sequence.pending_tokens = sequence.pending_tokens[1:] or sequence.pending_tokens


class EverySlot(DecodeLoop):
    """Rollouts that wait or are over take part in every pass."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._all, feed = len(self._slots), self._decoder.feed

        def fill(first: int, tokens: Sequence[Any], starts: Sequence[int], *_: Any) -> Any:
            if first == 0 and all(len(ids) == 1 for ids in tokens):
                others: list[ActiveSequence] = self._slots[len(tokens) :]
                starts = [*starts, *(s.cached_length for s in others)]
                starts += [0] * (self._all - len(starts))
                tokens = [*tokens, *[[0]] * (self._all - len(tokens))]
            return feed(first, tokens, starts)

        self._decoder.feed = fill  # type: ignore[method-assign]

    def _decode_step(self) -> None:
        sample = self._sampler.sample
        self._sampler.sample = lambda logits, *rest: sample(logits[: self._active], *rest)  # type: ignore
        super()._decode_step()
        self._sampler.sample = sample  # type: ignore[method-assign]


class EveryPrompt(DecodeLoop):
    """Every rollout reads its prompt, though its group shares it."""

    def _prefill(self) -> None:
        prompts = [sequence.prompt[:-1] for sequence in self._slots]
        self._decoder.feed(0, prompts, [0] * len(prompts))
        for sequence in self._slots:
            sequence.pending_tokens = sequence.prompt[-1:]
        self._active = len(self._slots)


class Patient(DecodeLoop):
    """The environments step when no sequence is active any more."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments[:-1], 2.0)


@contextlib.contextmanager
def _all_logits(model: Any, places: Any) -> Iterator[None]:
    """Logits of prompts and results too."""
    yield


@contextlib.contextmanager
def without(place: Any, name: str, other: Any) -> Iterator[None]:
    """Put something else in a trick's place."""
    kept = getattr(place, name)
    setattr(place, name, other)
    yield
    setattr(place, name, kept)


TRICKS: dict[str, tuple[Any, str, Any]] = {
    "results read a token at a time": (generation, "DecodeLoop", ResultsByToken),
    "nobody leaves the batch": (generation, "DecodeLoop", EverySlot),
    "every prompt read for itself": (generation, "DecodeLoop", EveryPrompt),
    "listening when all wait": (generation, "DecodeLoop", Patient),
    "logits of all tokens": (learner, "sees_only", _all_logits),
}


# What is printed -----------------------------------------------------------------------------


def compare(model: str, steps: int, with_tricks: bool, folder: Path) -> Times:
    """Alternate steps of both trainers, and of the reference without each trick."""
    clock = Clock()
    settings = settings_of(model, steps + WARM_UP)
    stepper = Stepper(model, settings, folder / "reference", clock)

    def between() -> None:
        stepper.step()
        for name, trick in TRICKS.items() if with_tricks else ():
            with without(*trick):
                stepper.step(name)

    trainer = trl_trainer(model, settings, folder / "trl", clock)
    trainer.add_callback(Alternate(clock, between))
    trainer.train()
    return {name: times[WARM_UP:] for name, times in clock.times.items()}


def table(times: Times, rollouts: int) -> None:
    """Rollouts and steps per second, and how they compare."""
    for part, count in (("rollout", rollouts), ("step", 1)):
        rival = times[f"TRL {part}"]
        for name in [key for key in times if key.endswith(f" {part}")]:
            rate = count / statistics.median(times[name])
            pairs = zip(rival, times[name], strict=True)
            ratio = statistics.median(theirs / ours for theirs, ours in pairs)
            unit = f"{part}s/s"
            print(f"{name.removesuffix(part):34}{rate:9.2f} {unit:12}{ratio:6.2f} times TRL's")


def held(which: str, model: str, folder: Path) -> float:
    """The most that a process which trains a few steps with one trainer has held, in MiB."""
    clock, settings = Clock(), settings_of(model, WARM_UP + 3)
    if which == "trl":
        trl_trainer(model, settings, folder, clock).train()
    else:
        stepper = Stepper(model, settings, folder, clock)
        for _ in range(WARM_UP + 3):
            stepper.step()
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    # Linux' own book of this process; `getrusage` would count the process that started it.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a folder with model and tokenizer")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--tricks", action="store_true", help="also leave out one trick each")
    parser.add_argument("--held", choices=("trl", "reference"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model = options.model or warmed_up(folder)
        if options.held:
            print(held(options.held, model, folder))
            return
        settings = settings_of(model, 1)
        print(
            f"{model}, {settings.prompts} tasks x {settings.group_size} rollouts,"
            f" {torch.get_num_threads()} threads, torch {torch.__version__}"
        )
        table(
            compare(model, options.steps, options.tricks, folder),
            settings.prompts * settings.group_size,
        )
        for which in ("trl", "reference"):
            command = [sys.executable, __file__, "--model", model, "--held", which]
            told = subprocess.run(command, capture_output=True, text=True, check=True)
            print(f"{which:34}{float(told.stdout.split()[-1]):9.0f} MiB held at most")


if __name__ == "__main__":
    main()
