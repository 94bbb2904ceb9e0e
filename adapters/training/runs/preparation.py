"""From nothing, or from a pretrained model, to one that talks to the environment's tools.

Demonstrations are played, a tokenizer is made for them if the model is the tiny one, and the model
imitates them. The result is a checkpoint folder that holds model and tokenizer; a run that is
taken up again loads it and does nothing of this a second time.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from adapters.tiny.model import build_model
from adapters.tiny.tokenizer import mistakes, null_padded, train_tokenizer
from adapters.training.models.chat_policy import load_model
from adapters.training.models.chat_templates import ChatTemplate
from adapters.training.models.demonstrations import demonstrate
from adapters.training.models.low_rank import Adapter, lora_config
from adapters.training.models.supervised import SftSettings, train_supervised
from adapters.training.models.tokenized_examples import examples_of
from adapters.training.models.weights import fast_dtype
from adapters.training.runs.progress import ProgressListener
from adapters.training.runs.settings import TrainSettings
from toolgym import registration
from toolgym.messages import Message
from toolgym.runs.checkpoints import write_origin
from toolgym.runs.files import replace_file
from toolgym.runs.run import Run

WARMUP = "warmup"
TEMPLATE = "chat_template.jinja"
"""The text of the run's chat template, in its folder, where one was asked for."""
_PADDED, _MISTAKEN = 300, 20  # transcripts that only the tokenizer sees

Saved: TypeAlias = PreTrainedModel | Adapter
"""What has a `save_pretrained`."""
Pair = tuple[PreTrainedModel, PreTrainedTokenizerBase]


class Checks(Protocol):
    """Evaluations while a model is trained (`adapters.training.runs.selection`)."""

    def begin_again_after(self, step: int) -> None:
        """Forget what came after a step."""
        ...

    def check(
        self,
        step: int,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        saved: Adapter | None = None,
    ) -> bool:
        """Evaluate if it is time for it, and say whether training should end."""
        ...

    def kept(self) -> Path | None:
        """The folder of the weights to go on with; None: those that the model has."""
        ...


def prepare(
    settings: TrainSettings, run: Run, watch: ProgressListener, checks: Checks | None = None
) -> Pair:
    """The model as it is before reinforcement learning, and its tokenizer.

    Args:
        checks: Evaluations while it imitates.

    Raises:
        ConfigurationError: The model cannot be loaded, or the environment has no expert.
    """
    disable_progress_bar()  # a bar for every file that is saved
    _keep_template(settings, run)
    folder = run.checkpoints / WARMUP
    needs_none = not settings.is_tiny and not settings.sft_steps
    if folder.is_dir() or needs_none:
        return load_prepared(settings, run)
    run.cut_metrics("warmup", 0)
    if checks is not None:
        checks.begin_again_after(-1)
    loaded = None if settings.is_tiny else _loaded(settings, run)  # first: it may not be there
    transcripts = _demonstrations(settings, watch)
    model, tokenizer = loaded or _tiny(settings, transcripts)
    if settings.sft_steps:
        _imitate(model, tokenizer, transcripts, settings, run, watch, checks)
    save(model, tokenizer, folder, settings)
    return model, tokenizer


def load_prepared(settings: TrainSettings, run: Run) -> Pair:
    """The same where `prepare` has been called before; the tiny model is on the CPU again.

    Raises:
        ConfigurationError: The model cannot be loaded.
    """
    folder = run.checkpoints / WARMUP
    if not folder.is_dir():
        return _loaded(settings, run)
    device = "cpu" if settings.is_tiny else None
    return load_model(str(folder), for_training=True, dtype=settings.dtype, device=device)


def save(
    model: Saved,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    settings: TrainSettings | None = None,
) -> None:
    """Write a checkpoint folder whole or not at all; one of the same name gives way.

    Args:
        settings: Of the run; an evaluation of the checkpoint takes data set and split from them.
    """
    fresh = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    model.save_pretrained(fresh)
    tokenizer.save_pretrained(fresh)
    if settings is not None:
        note_origin(fresh, settings)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def note_origin(folder: Path, settings: TrainSettings) -> None:
    """Write into a checkpoint which environment its run measures it in."""
    write_origin(folder, settings.env_id, settings.evaluation_kwargs, settings.max_new_tokens)


def for_this_machine(settings: TrainSettings) -> TrainSettings:
    """The settings with what the machine decides: what `dtype="auto"` is here."""
    if settings.dtype != "auto":
        return settings
    dtype = "float32" if settings.is_tiny or settings.needs_float32 else fast_dtype()
    return settings.model_copy(update={"dtype": dtype})


def use_threads(settings: TrainSettings) -> int:
    """Set how many threads PyTorch computes with, and return it.

    The tiny model is too small to share out. A second thread makes an idle machine a third faster,
    and one that has other work ten times slower, since each thread waits for the other in a loop
    (both measured on two cores); and one thread gives the same numbers on any number of cores.
    `OMP_NUM_THREADS` goes before that, and a pretrained model takes what PyTorch gives it.
    """
    if settings.is_tiny and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    return torch.get_num_threads()


def _demonstrations(settings: TrainSettings, watch: ProgressListener) -> list[list[Message]]:
    with watch.phase("demonstrations", settings.demonstrations) as advance:
        return demonstrate(
            settings.env_id,
            settings.demonstrations,
            demonstrator=settings.demonstrator,
            seed=settings.seed,
            progress=lambda done, _: advance(done, ""),
            **settings.training_kwargs,
        )


def _keep_template(settings: TrainSettings, run: Run) -> None:
    """Write the chat template down, so that a run that is taken up goes on with the same."""
    file = run.path / TEMPLATE
    if settings.chat_template is not None and not file.is_file():
        text = ChatTemplate.named(settings.chat_template).text
        replace_file(file, [text.encode("utf-8")])


def _loaded(settings: TrainSettings, run: Run) -> Pair:
    """The model that the run began with, with the chat template that it began with."""
    template, file = settings.chat_template, run.path / TEMPLATE
    how: dict[str, Any] = {"for_training": True, "dtype": settings.dtype}
    if template is not None:
        how["chat_template"] = ChatTemplate(template, file.read_text(encoding="utf-8"))
    return load_model(settings.model, **how)


def _tiny(settings: TrainSettings, transcripts: Sequence[Sequence[Message]]) -> Pair:
    env = registration.make(settings.env_id, **settings.training_kwargs)
    tools = env.tool_schemas()
    ids = env.tasks.first_playable(_MISTAKEN).ids
    padded = [null_padded(transcript, tools) for transcript in transcripts[:_PADDED]]
    tokenizer = train_tokenizer([*transcripts, *padded, *mistakes(env, ids)])
    return build_model(tokenizer, settings.seed, copying=settings.copying), tokenizer


def _imitate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    transcripts: Sequence[Sequence[Message]],
    settings: TrainSettings,
    run: Run,
    watch: ProgressListener,
    checks: Checks | None,
) -> None:
    env = registration.make(settings.env_id, **settings.training_kwargs)
    tools = env.tool_schemas()
    examples = [e for each in transcripts for e in examples_of(each, tools, tokenizer)]
    how = SftSettings(
        settings.sft_steps,
        settings.sft_batch,
        settings.sft_learning_rate,
        ramp=min(20, settings.sft_steps // 5),
        seed=settings.seed,
        matrix_rate=settings.sft_matrix_rate,
        tokens_per_pass=settings.sft_tokens_per_pass or 8192,
        gradient_checkpointing=has_checkpointing(settings),
        alike=settings.sft_alike,
    )
    config = adapter_config(settings) if settings.has_adapter_from_start else None
    adapter = None if config is None else Adapter(model, config, settings.seed)
    with watch.phase("warm-up", settings.sft_steps) as advance, _reproducible(settings.seed):

        def on_step(numbers: dict[str, float]) -> None:
            run.log_metrics({"phase": "warmup", **numbers})
            advance(int(numbers["step"]), f"loss {numbers['loss']:.3f}")

        train_supervised(model, examples, how, on_step)
    if adapter is not None:
        adapter.merge()


def adapter_config(settings: TrainSettings) -> Any:
    """The `LoraConfig` of peft for the adapter of `lora`; None without it.

    Raises:
        ConfigurationError: peft is not installed.
    """
    if not settings.lora:
        return None
    return lora_config(settings.lora_rank, settings.lora_alpha, settings.lora_targets)


def has_checkpointing(settings: TrainSettings) -> bool:
    """Whether activations are computed twice; the setting is the reference trainer's own."""
    wanted = settings.trainer_options.get("gradient_checkpointing")
    return settings.trainer == "reference" and bool(wanted)


@contextlib.contextmanager
def _reproducible(seed: int) -> Iterator[None]:
    """A random state of the seed's own, for models that have dropout; the old one comes back."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
