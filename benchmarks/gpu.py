"""Benchmarks supervised training, prefill, decode, updates and GRPO steps on one device.

Each part is compared with a plain PyTorch loop, `model.generate` or TRL's `GRPOTrainer` in the same
process, on the same model and the same number of tokens. The first run of a part, which builds
kernels, attention plans and CUDA graphs, is reported separately; results are the median of later
runs.

    python benchmarks/gpu.py                                  # random weights like SmolLM2-135M
    python benchmarks/gpu.py --model qwen3-0.6b --json results.json
    python benchmarks/gpu.py --model FOLDER --budget 120      # a folder of weights and tokenizer
    python benchmarks/gpu.py --model tiny --device cpu        # quick test of the benchmark

Parts that would begin after `--budget` seconds are skipped and listed. Tokens per second count
prompts and completions without padding, and for decode sampled tokens only.

A machine without network needs wheels. Build them on a machine with network, for the Python version
of the target machine:

    pip wheel --no-deps -w wheels .
    pip download -d wheels --only-binary=:all: --python-version 3.12 'toolgym[train]' -f wheels

If PyTorch is installed on the machine, omit the wheels of torch and of its `nvidia_*` packages. On
the machine, with this file:

    pip install --no-index --find-links wheels --target site 'toolgym[train]'
    PYTHONPATH=site python gpu.py

Imports take three times as long if the packages have no bytecode: in a folder that was unpacked and
not installed (`python -m compileall -q site` compiles it), or with PYTHONDONTWRITEBYTECODE set.
"""

from __future__ import annotations

import argparse
import copy
import gc
import itertools
import json
import logging
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from torch import Tensor
from torch.nn import functional
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    PretrainedConfig,
    Qwen3Config,
)

from adapters.reference.losses import Pass, Totals, policy_loss
from adapters.reference.train import ReferenceTrainer, Rollout
from adapters.tiny.tokenizer import train_tokenizer
from adapters.training.models.demonstrations import demonstrate
from adapters.training.models.master_weights import MasterAdamW
from adapters.training.models.supervised import SftSettings, train_supervised
from adapters.training.models.token_log_probs import passes, token_log_probs
from adapters.training.models.tokenized_examples import Example
from adapters.training.settings import GrpoSettings
from toolgym import registration
from toolgym.generation import Engine, Generation
from toolgym.messages import prompt_messages
from toolgym.records import EpisodeRecord

ENV, DATASET = "sqlgym/Explore-v0", "tiny"
T = TypeVar("T")
OURS, PLAIN, GENERATE, TRL = "toolgym", "plain loop", "generate", "TRL"
RATE = 1e-6

_SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
)
SHAPES: dict[str, tuple[type[PretrainedConfig], tuple[int, ...]]] = {
    "tiny": (Qwen3Config, (2048, 128, 384, 2, 4, 4, 32)),
    "smollm2-135m": (LlamaConfig, (49152, 576, 1536, 30, 9, 3, 64)),
    "smollm2-360m": (LlamaConfig, (49152, 960, 2560, 32, 15, 5, 64)),
    "qwen3-0.6b": (Qwen3Config, (151936, 1024, 3072, 28, 16, 8, 128)),
    "qwen3-1.7b": (Qwen3Config, (151936, 2048, 6144, 28, 16, 8, 128)),
}


@dataclass
class Figure:
    """The timings of one part by one implementation.

    Attributes:
        part: Name of the part.
        by: Name of the implementation.
        tokens: Tokens of a run; 0 if no rate is reported.
        first: Seconds of the first run.
        runs: Seconds of the runs after it.
        memory: Peak memory in MiB: allocated on the GPU, or resident on a CPU since the start.
        minus: Seconds to subtract from each run, such as those of the prefill before a decode.
    """

    part: str
    by: str
    tokens: int
    first: float
    runs: list[float]
    memory: float
    minus: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of the median run, or of the first run if there is no other."""
        return statistics.median(self.runs or [self.first]) - self.minus

    @property
    def rate(self) -> float | None:
        """Tokens per second."""
        return self.tokens / self.seconds if self.tokens and self.seconds > 0 else None


@dataclass
class Bench:
    """The state of the benchmark: options, model, figures so far.

    Attributes:
        options: Options of the command line.
        model: The model, on the device; parts that train copy it.
        texts: Rendered prompts of tasks of the environment.
    """

    options: argparse.Namespace
    model: Any
    tokenizer: Any
    texts: list[str]
    device: torch.device
    began: float = field(default_factory=time.perf_counter)
    figures: list[Figure] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def is_over(self, name: str) -> bool:
        """Return whether the budget is spent, and list the part `name` as skipped if it is."""
        over = bool(time.perf_counter() - self.began > self.options.budget)
        if over:
            self.skipped.append(name)
        return over

    def time(
        self, part: str, by: str, work: Callable[[], int], minus: float = 0.0
    ) -> Figure | None:
        """Time a function: a first run and `options.runs` further ones.

        Args:
            work: The function; it returns its number of tokens.
        """
        if self.is_over(f"{part}, {by}"):
            return None
        with self.memory() as peak:
            tokens, first = self.timed(work)
            runs: list[float] = []
            while len(runs) < self.options.runs and not (
                runs and time.perf_counter() - self.began > self.options.budget
            ):
                runs.append(self.timed(work)[1])
        return self.add(Figure(part, by, tokens, first, runs, peak(), minus))

    def timed(self, work: Callable[[], T]) -> tuple[T, float]:
        """Return the result of a function and its seconds, including work of the device."""
        self.wait()
        start = time.perf_counter()
        result = work()
        self.wait()
        return result, time.perf_counter() - start

    def add(self, figure: Figure) -> Figure:
        """Store and print a result."""
        self.figures.append(figure)
        rate = f"{figure.rate:,.0f} tokens/s" if figure.rate else f"{figure.seconds:.3f} s"
        print(f"  {figure.part}, {figure.by}: {rate}", file=sys.stderr, flush=True)
        return figure

    def wait(self) -> None:
        """Wait for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @contextmanager
    def memory(self) -> Iterator[Callable[[], float]]:
        """Context manager that yields a function for the peak memory in MiB."""
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            yield lambda: torch.cuda.max_memory_allocated() / 2**20
        else:
            yield lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10

    def sequences(self, prompt: int, completion: int) -> list[list[int]]:
        """Return random token sequences, with prompts up to a tenth shorter than `prompt`."""
        draw, top = random.Random(0), min(self.model.config.vocab_size, 30_000)
        lengths = [draw.randint(prompt - prompt // 10, prompt) + completion for _ in self.rows()]
        return [[draw.randrange(10, top) for _ in range(length)] for length in lengths]

    def rows(self) -> range:
        """Return the number of each sequence of a batch."""
        return range(self.options.sequences)


# Supervised steps and updates: forward and backward passes over whole texts, and AdamW.


def plain_step(
    bench: Bench, texts: list[list[int]], learned: int, loss: Callable[[Tensor, Tensor], Tensor]
) -> Callable[[], int]:
    """Return a plain PyTorch step over texts whose last `learned` tokens are in the loss.

    Args:
        loss: Function of logits [M, V] and target tokens [M].
    """
    rows, device = bench.options.rows, bench.device
    model = copy.deepcopy(bench.model).train()
    adam = torch.optim.AdamW(model.parameters(), RATE, fused=device.type == "cuda")

    def step() -> int:
        for start in range(0, len(texts), rows):
            batch = texts[start : start + rows]
            width = max(map(len, batch))
            ids = torch.tensor([text + [0] * (width - len(text)) for text in batch], device=device)
            ends = torch.tensor([[len(text)] for text in batch], device=device)
            positions = torch.arange(width, device=device)
            logits = model(input_ids=ids, attention_mask=positions < ends, use_cache=False).logits
            is_learned = ((positions >= ends - learned) & (positions < ends))[:, 1:]
            loss(logits[:, :-1][is_learned].float(), ids[:, 1:][is_learned]).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
        return sum(map(len, texts))

    return step


def as_examples(texts: list[list[int]], learned: int) -> list[Example]:
    """Return examples of the texts, with the last `learned` tokens in the loss."""
    return [
        Example(tuple(ids), (*[False] * (len(ids) - learned), *[True] * learned)) for ids in texts
    ]


def imitation(bench: Bench) -> None:
    """Measure a step of supervised training on texts."""
    options = bench.options
    texts = bench.sequences(options.prompt, options.completion)
    learned = options.completion * 3
    if not bench.is_over(f"imitation, {OURS}"):
        marks = list[float]()

        def on_step(numbers: dict[str, float]) -> None:
            bench.wait()
            marks.append(time.perf_counter())

        with bench.memory() as peak:
            settings = SftSettings(
                options.runs + 1,
                len(texts),
                RATE,
                ramp=1,
                tokens_per_pass=options.tokens_per_pass,
            )
            model = copy.deepcopy(bench.model)
            bench.wait()
            marks.append(time.perf_counter())
            train_supervised(model, as_examples(texts, learned), settings, on_step)
            runs = [end - begin for begin, end in itertools.pairwise(marks)]
            bench.add(Figure("imitation", OURS, sum(map(len, texts)), runs[0], runs[1:], peak()))
        del model
    bench.time("imitation", PLAIN, plain_step(bench, texts, learned, functional.cross_entropy))


def update(bench: Bench) -> None:
    """Measure the update of a GRPO step on given rollouts."""
    options = bench.options
    texts = bench.sequences(options.prompt, options.completion)

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        log_probs: Tensor = torch.log_softmax(logits, dim=1).gather(1, targets[:, None])
        ratio = torch.exp(log_probs - log_probs.detach())
        mean: Tensor = (ratio * torch.randn_like(ratio)).sum() / (options.completion * len(texts))
        return -mean

    bench.time("update", OURS, our_update(bench, texts))
    bench.time("update", PLAIN, plain_step(bench, texts, options.completion, loss))


def our_update(bench: Bench, texts: list[list[int]]) -> Callable[[], int]:
    """Return the update of the reference trainer on the completions of the texts."""
    n, config = bench.options.completion, GrpoSettings.model_validate({"loss": "dapo", "beta": 0.0})
    model, examples = copy.deepcopy(bench.model), as_examples(texts, n)
    optimizer = MasterAdamW(model.parameters(), betas=config.betas)
    totals = Totals(len(texts), n * len(texts), n)

    def step() -> int:
        for indices in passes(examples, bench.options.tokens_per_pass, model):
            log_probs, entropy = token_log_probs(model, [examples[index] for index in indices])
            row = torch.arange(len(indices), device=bench.device).repeat_interleave(n)
            batch = Pass(log_probs, log_probs.detach(), (row % 2 * 2 - 1).float(), row)
            loss, _ = policy_loss(batch, config, totals, reference=None, entropy=entropy)
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.gradients()
        optimizer.step(RATE, optimizer.norm()[0], 1.0)
        return sum(map(len, texts))

    return step


# Prefill and decode: prompts of one length, with the same number of new tokens.


def generation(bench: Bench) -> None:
    """Measure reading the prompts of a batch, and continuing each by `completion` tokens."""
    options, model = bench.options, bench.model
    prompts = [ids[: options.prompt] for ids in bench.sequences(options.prompt, options.prompt)]
    read: int = options.prompt * len(prompts)
    sampled: int = (options.completion - 1) * len(prompts)
    engine = Engine(model, stop=(), slots=len(prompts))
    ids = torch.tensor(prompts, device=bench.device)

    def by_engine(tokens: int) -> None:
        engine.generate([Generation(list(p), str(n), tokens) for n, p in enumerate(prompts)])

    @torch.no_grad()
    def by_generate(tokens: int) -> None:
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            top_k=0,
            min_new_tokens=tokens,
            max_new_tokens=tokens,
            pad_token_id=0,
        )

    @torch.no_grad()
    def by_hand(tokens: int) -> None:
        new, cache = ids, None
        for _ in range(tokens):
            output = model(input_ids=new, past_key_values=cache, use_cache=True, logits_to_keep=1)
            cache = output.past_key_values
            new = torch.multinomial(output.logits[:, -1].float().softmax(dim=1), 1)

    implementations: dict[str, Callable[[int], None]] = {
        OURS: by_engine,
        PLAIN: by_hand,
        GENERATE: by_generate,
    }
    for by, generate in implementations.items():

        def prefill(generate: Callable[[int], None] = generate) -> int:
            generate(1)
            return read

        def decode(generate: Callable[[int], None] = generate) -> int:
            generate(options.completion)
            return sampled

        before = bench.time("prefill", by, prefill)
        if before is not None:
            bench.time("decode", by, decode, before.seconds)
        engine.release()  # otherwise its cache would count as memory of the others


# Whole GRPO steps.


class _Rewarded(ReferenceTrainer):
    """The trainer with alternating rewards, since with random weights all rewards are equal."""

    def sample(self) -> tuple[list[Rollout], list[Rollout], dict[str, float]]:
        learned, played, metrics = super().sample()
        for index, rollout in enumerate(learned):
            rollout.reward = float(index % 2)
        return learned, played, metrics


def grpo(bench: Bench) -> None:
    """Measure steps of the reference trainer on a tool environment: rollouts, loss, AdamW."""
    if bench.is_over(f"GRPO step, {OURS}"):
        return
    options, marks, seen = bench.options, list[float](), list[dict[str, float]]()
    config = GrpoSettings.model_validate(
        {
            "steps": options.runs + 1,
            "prompts": options.sequences // options.group_size,
            "group_size": options.group_size,
            "max_draws": None,
            "learn_from_unfinished": True,
            "max_completion_length": options.completion,
            "at_once": options.sequences,
            "tokens_per_pass": options.tokens_per_pass,
            "dtype": options.dtype,
            "learning_rate": RATE,
            "loss": "dapo",
            "beta": 0.0,
            "guards": {"only_warn": True},
            "save_every": 10_000,
        }
    )

    def on_step(step: int, metrics: dict[str, float], episodes: list[EpisodeRecord]) -> None:
        bench.wait()
        marks.append(time.perf_counter())
        seen.append(metrics)

    def may_go_on(step: int, adapter: Any) -> dict[str, float] | None:
        if not marks:
            marks.append(time.perf_counter())
        over = time.perf_counter() - bench.began > options.budget
        return None if over and len(marks) > 1 else {}

    with bench.memory() as peak, tempfile.TemporaryDirectory() as folder:
        trainer = _Rewarded(
            copy.deepcopy(bench.model),
            bench.tokenizer,
            ENV,
            Path(folder),
            config,
            env_kwargs={"dataset": DATASET},
            on_step=on_step,
            evaluate=may_go_on,
        )
        trainer.train()
        memory = peak()
    runs = [end - begin for begin, end in itertools.pairwise(marks)]
    bench.add(Figure("GRPO step", OURS, 0, runs[0], runs[1:], memory))
    for part in ("rollout", "update"):
        spent = [metrics[f"{part}_seconds"] for metrics in seen]
        bench.add(Figure(f"GRPO step, its {part}", OURS, 0, spent[0], spent[1:], memory))


def trl_grpo(bench: Bench) -> None:
    """Measure steps of TRL's `GRPOTrainer` on the same prompts without tools."""
    if bench.options.no_trl or bench.is_over(f"GRPO step, {TRL}"):
        return
    from datasets import Dataset
    from transformers import TrainerCallback
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    options = bench.options
    groups = options.sequences // options.group_size
    spent, tokens = list[float](), list[int]()

    class Timed(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            batch, seconds = bench.timed(lambda: super_generate(self, inputs))
            spent.append(seconds)
            tokens.append(int(batch["prompt_mask"].sum() + batch["completion_mask"].sum()))
            return batch

    super_generate = GRPOTrainer._generate_and_score_completions
    marks = list[float]()

    class Marks(TrainerCallback):
        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            bench.wait()
            marks.append(time.perf_counter())

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            bench.wait()
            marks.append(time.perf_counter())
            if time.perf_counter() - bench.began > options.budget:
                control.should_training_stop = True

    with bench.memory() as peak, tempfile.TemporaryDirectory() as folder:
        settings = GRPOConfig(
            output_dir=folder,
            max_steps=options.runs + 1,
            num_generations=options.group_size,
            per_device_train_batch_size=min(options.rows, options.sequences),
            gradient_accumulation_steps=max(1, options.sequences // options.rows),
            max_completion_length=options.completion,
            generation_kwargs={"min_new_tokens": options.completion},
            learning_rate=RATE,
            use_cpu=bench.device.type == "cpu",
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        prompts = [bench.texts[index % len(bench.texts)] for index in range(2 * groups)]
        trainer = Timed(
            model=copy.deepcopy(bench.model),
            reward_funcs=[
                lambda completions, **_: [float(n % 2) for n, _ in enumerate(completions)]
            ],
            processing_class=bench.tokenizer,
            args=settings,
            train_dataset=Dataset.from_list([{"prompt": text} for text in prompts]),
            callbacks=[Marks()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        memory = peak()
    steps = [end - begin for begin, end in zip(marks[::2], marks[1::2], strict=True)]
    learned = [step - played for step, played in zip(steps, spent, strict=False)]
    bench.add(Figure("GRPO step", TRL, 0, steps[0], steps[1:], memory))
    bench.add(Figure("GRPO step, its rollout", TRL, 0, spent[0], spent[1:], memory))
    bench.add(Figure("GRPO step, its update", TRL, 0, learned[0], learned[1:], memory))
    bench.add(Figure("update", TRL, tokens[-1], learned[0], learned[1:], memory))


# From the start of a process to its first rollouts.

_CHILD = """
import json, sys, time
from pathlib import Path
born, folder, device, dtype, rollouts, tokens, env_id, dataset = sys.argv[1:]
marks = []
from adapters.reference.train import Player, Rollout
from adapters.training.models.chat_policy import load_model
marks.append(time.time() - float(born))
model, tokenizer = load_model(folder, for_training=True, dtype=dtype, device=device)
marks.append(time.time() - float(born))
player = Player(model, tokenizer, env_id, {"dataset": dataset}, slots=int(rollouts))
task = player.env.tasks.first_playable(1)[0].id
player.check(task)
player.play([Rollout(task, 0, str(n)) for n in range(int(rollouts))], max_tokens=int(tokens))
marks.append(time.time() - float(born))
print(json.dumps(marks))
"""


def first_rollout(bench: Bench) -> None:
    """Measure the seconds of a new process until imports, model and first rollouts are done."""
    options, names = bench.options, ("imports", "model loaded", "first rollouts")
    if bench.is_over("time to first rollouts"):
        return
    with tempfile.TemporaryDirectory() as folder:
        bench.model.save_pretrained(folder)
        bench.tokenizer.save_pretrained(folder)
        words = [folder, str(bench.device), options.dtype, options.group_size, options.completion]
        words = [str(word) for word in (time.time(), *words, ENV, DATASET)]
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, *words],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=False,
        )
    if done.returncode:
        bench.skipped.append(f"time to first rollouts: {done.stderr.strip().splitlines()[-1]}")
        return
    for name, seconds in zip(names, json.loads(done.stdout.splitlines()[-1]), strict=True):
        bench.add(Figure(f"new process, {name}", OURS, 0, seconds, [], 0))


# The table.


def table(bench: Bench) -> str:
    """Return a table with one line for each part and implementation."""
    plain = {figure.part: figure for figure in bench.figures if figure.by == PLAIN}
    lines = [
        f"{'':30}{'':12}{'first run':>10}{'then':>10}{'(spread)':>17}{'tokens/s':>12}"
        f"{'of plain':>10}{'MiB':>8}"
    ]
    for each in sorted(bench.figures, key=lambda figure: _ORDER.index(figure.part)):
        runs = [run - each.minus for run in each.runs]
        spread = f"({min(runs):.3f}-{max(runs):.3f})" if runs else ""
        then = f"{each.seconds:.3f} s" if runs else ""
        rate = f"{each.rate:,.0f}" if each.rate else ""
        base = plain.get(each.part)
        ratio = f"{each.rate / base.rate:.2f}" if each.rate and base and base.rate else ""
        memory = f"{each.memory:,.0f}" if each.memory else ""
        lines.append(
            f"{each.part:30}{each.by:12}{each.first:8.3f} s{then:>10}{spread:>17}{rate:>12}"
            f"{ratio:>10}{memory:>8}"
        )
    lines += [f"skipped: {name}" for name in bench.skipped]
    return "\n".join(lines)


_ORDER = [
    "imitation",
    "prefill",
    "decode",
    "update",
    "GRPO step",
    "GRPO step, its rollout",
    "GRPO step, its update",
    "new process, imports",
    "new process, model loaded",
    "new process, first rollouts",
]


def machine(device: torch.device) -> dict[str, Any]:
    """Return the device and the versions of packages."""
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.processor()
    return {
        "device": name or platform.machine(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "transformers": transformers.__version__,
        "trl": version("trl"),
    }


def loaded(options: argparse.Namespace, device: torch.device) -> tuple[Any, Any, list[str]]:
    """Load model and tokenizer, and render the prompts of some tasks."""
    env = registration.make(ENV, dataset=DATASET)
    auto: Any = AutoModelForCausalLM
    dtype = getattr(torch, options.dtype)
    if options.model in SHAPES:
        tokenizer: Any = train_tokenizer(demonstrate(ENV, 20, dataset=DATASET))
        kind, sizes = SHAPES[options.model]
        shape = kind(
            **dict(zip(_SIZES, sizes, strict=True)),
            max_position_embeddings=8192,
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
        torch.manual_seed(0)
        with device:
            model = auto.from_config(shape, dtype=dtype)
    else:
        tokenizer = AutoTokenizer.from_pretrained(options.model)
        model = auto.from_pretrained(options.model, dtype=dtype).to(device)
    tasks, texts = env.tasks.first_playable(max(1, options.sequences // options.group_size)), []
    for task in tasks:
        env.reset(options={"task_id": task.id})
        text = tokenizer.apply_chat_template(
            prompt_messages(env),
            tools=env.tool_schemas(),
            add_generation_prompt=True,
            tokenize=False,
        )
        texts.append(text)
    return model.eval(), tokenizer, texts


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line; default sizes depend on the device."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", default="smollm2-135m", help=f"a folder, or one of {', '.join(SHAPES)}")
    add("--device", choices=("cuda", "cpu"), help="default: cuda if available")
    add("--dtype", choices=("bfloat16", "float32"), help="default: bfloat16; float32 on a CPU")
    add(
        "--budget",
        type=float,
        default=240,
        help="seconds after which no part begins (default: 240)",
    )
    add("--runs", type=int, default=3, help="runs after the first one (default: 3)")
    add("--sequences", type=int, help="sequences per batch (256; 8 on a CPU)")
    add("--prompt", type=int, help="tokens per prompt (560; 64 on a CPU)")
    add("--completion", type=int, help="tokens per completion (64; 12 on a CPU)")
    add("--group-size", type=int, default=8, help="rollouts per task (8)")
    add("--rows", type=int, default=32, help="rows per pass of the plain loop and TRL (32)")
    add("--tokens-per-pass", type=int, help="tokens per pass of toolgym (the tokens of --rows)")
    add("--no-trl", action="store_true", help="do not measure TRL")
    add("--json", type=Path, metavar="FILE", help="file for the results")
    options = parser.parse_args(arguments)
    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    is_cpu = options.device == "cpu"
    options.dtype = options.dtype or ("float32" if is_cpu else "bfloat16")
    for name, small, large in (("sequences", 8, 256), ("prompt", 64, 560), ("completion", 12, 64)):
        if getattr(options, name) is None:
            setattr(options, name, small if is_cpu else large)
    if options.sequences % options.group_size:
        parser.error("--sequences must be a multiple of --group-size")
    each = options.prompt + options.completion
    options.tokens_per_pass = options.tokens_per_pass or options.rows * each
    return options


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure, print the table, and return the content of the `--json` file."""
    options = options_of(arguments)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("adapters").setLevel(
        logging.ERROR
    )  # guards would stop a training of random weights
    warnings.filterwarnings("ignore", category=FutureWarning)
    began = time.perf_counter()
    device = torch.device(options.device)
    bench = Bench(options, *loaded(options, device), device, began)
    for part in (generation, update, imitation, grpo, first_rollout, trl_grpo):
        part(bench)
    system = machine(device)
    settings = {k: str(v) if isinstance(v, Path) else v for k, v in vars(options).items()}
    print(
        f"{options.model}, {options.dtype}, {system['device']}, torch {system['torch']},"
        f" transformers {system['transformers']}, trl {system['trl']}: {options.sequences}"
        f" sequences of {options.prompt} + {options.completion} tokens,"
        f" {time.perf_counter() - began:.0f} s in all"
    )
    print(table(bench))
    figures = [
        {**asdict(each), "seconds": each.seconds, "tokens_per_second": each.rate}
        for each in bench.figures
    ]
    result = {
        "machine": system,
        "settings": settings,
        "figures": figures,
        "skipped": bench.skipped,
    }
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


if __name__ == "__main__":
    main()
