"""One GRPO update of the reference trainer beside TRL's: same model, same rollouts, same optimizer.

The rollouts are made up, since an update does not care what they say: each group has a prompt of
its own (`--prompt` tokens, of which `--common` are those of all prompts, as tools are) and
completions of `--completion` tokens. Timed is what is done with them: log-probabilities, loss,
gradient, AdamW. One update of TRL's `GRPOTrainer`, one of ours with every prompt read for each
rollout, and one with shared prompts follow each other in one process, and medians are compared, so
the ratios hold on a busy machine too. TRL computes without checkpointing and in the same precision.

    python benchmarks/grpo_update.py [--model FOLDER] [--dtype bfloat16] [--groups 4]
    python benchmarks/grpo_update.py --threads 1 --processor-time    # on a busy machine

Without `--model` it is a Llama of random weights with a tenth of the layers and of the vocabulary
of a model of 135 million parameters, which takes a minute. The exit status is 1 where the update is
not three times as fast as TRL's.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
import transformers
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, TrainerCallback
from transformers.trainer_callback import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from adapters.reference.config import reference_config
from adapters.reference.learner import Learner
from adapters.reference.optimizer import Optimizer, make_ready
from adapters.reference.rollout import Batch, Ending, Request, Rollout
from adapters.tiny.tokenizer import train_tokenizer
from adapters.training.models.demonstrations import demonstrate

_CAUSAL: Any = AutoModelForCausalLM
AIM = 3.0  # times TRL's updates per second
RATE = 1e-6
Times = dict[str, list[float]]


def random_model(dtype: torch.dtype) -> Any:
    """A tenth of a SmolLM2-135M."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=4915,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=3,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    return _CAUSAL.from_config(config, dtype=dtype)


def model_and_tokenizer(folder: str | None, dtype: torch.dtype) -> tuple[Any, Any]:
    """What both sides train."""
    if folder is None:
        transcripts = demonstrate("sqlgym/Explore-v0", 20, dataset="tiny")
        return random_model(dtype), train_tokenizer(transcripts)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    return model, AutoTokenizer.from_pretrained(folder)


def made_up_rollouts(options: argparse.Namespace, vocabulary: int) -> list[Rollout]:
    """Groups of rollouts over prompts that begin alike."""
    draw = random.Random(0)

    def some(length: int) -> list[int]:
        return [draw.randrange(10, vocabulary) for _ in range(length)]

    tools, length = some(options.common), options.completion
    prompts = [tools + some(options.prompt - options.common) for _ in range(options.groups)]
    return [
        Rollout(
            request=Request("t", group, str(member)),
            prompt=prompt,
            completion=some(length),
            mask=[1] * length,
            log_probs=[0.0] * length,
            turns=[(0, length)],
            turn_rewards=[float(member % 2)],
            reward=float(member % 2),
            ending=Ending.ANSWERED,
            episode=None,
        )
        for group, prompt in enumerate(prompts)
        for member in range(options.group_size)
    ]


class Clock:
    """Seconds of what was timed, by name; a part inside another one is left out of that.

    Args:
        now: What tells the time.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.times: Times = {}
        self._now, self._elsewhere = now, 0.0

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time what is done in this context."""
        _wait()
        before, start = self._elsewhere, self._now()
        yield
        _wait()
        seconds = self._now() - start - (self._elsewhere - before)
        self._elsewhere += seconds
        self.times.setdefault(name, []).append(seconds)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def our_update(model: Any, rollouts: list[Rollout], shares: bool) -> Callable[[], None]:
    """An update of the reference trainer from these rollouts."""
    settings = reference_config(
        {
            "learning_rate": RATE,
            "loss": {"name": "dapo"},
            "dtype": str(model.dtype).removeprefix("torch."),
            **({} if shares else {"share_prompts_from": None}),
        }
    )
    make_ready(model, settings)
    learner, optimizer = Learner(model, None, settings), Optimizer(model, settings)
    advantages = torch.tensor([2 * each.reward - 1 for each in rollouts])

    def update() -> None:
        batch = Batch.of(rollouts, [True] * len(rollouts))
        learner.accumulate(batch, advantages, learner.old_log_probs(batch), None)
        optimizer.step(RATE, optimizer.gradient()[0])

    return update


def tokens_read(model: Any, update: Callable[[], None]) -> int:
    """The tokens that go through the model in an update."""
    read: list[int] = []
    hook = model.get_input_embeddings().register_forward_pre_hook(
        lambda module, given: read.append(given[0].numel())
    )
    update()  # the first one measures whether the model can share
    read.clear()
    update()
    hook.remove()
    return sum(read)


class _Between(TrainerCallback):
    """Times the steps of TRL, and lets others work between two of them."""

    def __init__(self, clock: Clock, others: Callable[[], None]) -> None:
        self._clock, self._others = clock, others
        self._part: Any = None

    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self._part = self._clock.part("TRL")
        self._part.__enter__()

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        """Stop it."""
        self._part.__exit__(None, None, None)
        self._others()


class _Timed(GRPOTrainer):  # type: ignore[misc]
    """TRL's trainer, whose rollouts are timed apart from its update."""

    clock: Clock

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        with self.clock.part("making the batch"):
            return super()._generate_and_score_completions(inputs)


def trl_trainer(
    model: Any, tokenizer: Any, rollouts: list[Rollout], steps: int, folder: str
) -> _Timed:
    """TRL's trainer on the same rollouts, a group in each pass."""
    groups = len({each.request.group for each in rollouts})
    size = len(rollouts) // groups

    def played(prompts: Any, trainer: Any) -> dict[str, Any]:
        return {
            "prompt_ids": [each.prompt for each in rollouts],
            "completion_ids": [each.completion for each in rollouts],
            "logprobs": None,
        }

    def pay(completions: Any, **columns: Any) -> list[float]:
        return [each.reward for each in rollouts]

    settings = GRPOConfig(
        output_dir=folder,
        max_steps=steps,
        num_generations=size,
        per_device_train_batch_size=size,
        gradient_accumulation_steps=groups,
        max_completion_length=len(rollouts[0].completion),
        learning_rate=RATE,
        adam_beta2=0.98,
        use_cpu=not torch.cuda.is_available(),
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = _Timed(
        model=model,
        reward_funcs=[pay],
        processing_class=tokenizer,
        args=settings,
        train_dataset=Dataset.from_list([{"prompt": f"task {n}"} for n in range(groups)]),
        rollout_func=played,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def compare(options: argparse.Namespace) -> tuple[Times, dict[str, int]]:
    """Alternate updates: their seconds, and the tokens that our two put through the model."""
    dtype = getattr(torch, options.dtype)
    theirs, tokenizer = model_and_tokenizer(options.model, dtype)
    rollouts = made_up_rollouts(options, min(900, theirs.config.vocab_size))
    ours = copy.deepcopy(theirs)
    if torch.cuda.is_available():
        ours.to("cuda")
    updates = {
        "every prompt for each rollout": our_update(ours, rollouts, False),
        "shared prompts": our_update(ours, rollouts, True),
    }
    tokens = {name: tokens_read(ours, update) for name, update in updates.items()}
    clock = Clock(time.process_time if options.processor_time else time.perf_counter)

    def others() -> None:
        for name, update in updates.items():
            with clock.part(name):
                update()

    with tempfile.TemporaryDirectory() as folder:
        trainer = trl_trainer(theirs, tokenizer, rollouts, options.steps + 1, folder)
        trainer.clock = clock
        trainer.add_callback(_Between(clock, others))
        trainer.train()
    del clock.times["making the batch"]
    return {name: times[1:] for name, times in clock.times.items()}, tokens


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a folder with model and tokenizer")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    for name, value in (("prompt", 500), ("common", 0), ("completion", 40), ("group-size", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--processor-time", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    times, tokens = compare(options)
    print(
        f"{options.model or 'a tenth of 135M, random'}, {options.dtype}, {options.groups} x"
        f" {options.group_size} rollouts of {options.prompt} + {options.completion} tokens,"
        f" {options.threads} threads, load {os.getloadavg()[0]:.1f}, torch {torch.__version__}"
    )
    rival, ratio = times["TRL"], 1.0
    for name, seconds in times.items():
        ratio = statistics.median(a / b for a, b in zip(rival, seconds, strict=True))
        through = f"{tokens[name]:9,} tokens" if name in tokens else ""
        middle = statistics.median(seconds)
        print(f"{name:32}{middle:9.2f} s an update{ratio:8.2f} times TRL's {through}")
    return 0 if ratio >= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
