"""Supervised training (SFT) before reinforcement learning: demonstrations, tokenizer and model.

The tiny model is built in this module, with a tokenizer that is trained on the demonstrations. The
result is the checkpoint `sft`, which a resumed run loads.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

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
from adapters.training.settings import TrainSettings
from toolgym import registration
from toolgym.messages import Message
from toolgym.runs.checkpoints import write_origin
from toolgym.runs.files import replace_file
from toolgym.runs.run import Run

SFT: Final = "sft"
TEMPLATE: Final = "chat_template.jinja"
"""File in the run folder with the chat template, if the settings specify one."""
_PADDED, _MISTAKEN = 300, 20  # number of transcripts that only the tokenizer is trained on

Pair = tuple[PreTrainedModel, PreTrainedTokenizerBase]


def prepare(settings: TrainSettings, run: Run, watch: ProgressListener) -> Pair:
    """Return the model before reinforcement learning, and its tokenizer.

    The checkpoint `sft` is loaded if it exists. Otherwise the model is trained on demonstrations.

    Raises:
        ConfigurationError: If the model cannot be loaded, or the environment has no expert.
    """
    disable_progress_bar()  # transformers shows a bar for each saved file
    template = run.path / TEMPLATE
    if settings.chat_template is not None and not template.is_file():
        text = ChatTemplate.named(settings.chat_template).text
        replace_file(template, [text.encode("utf-8")])
    folder = run.checkpoints / SFT
    if folder.is_dir() or not (settings.is_tiny or settings.sft_steps):
        return load_prepared(settings, run)
    run.cut_metrics(SFT, 0)
    # Fails before demonstrations are played.
    loaded = None if settings.is_tiny else load_prepared(settings, run)
    with watch.phase("demonstrations", settings.demonstrations) as advance:
        transcripts = demonstrate(
            settings.env_id,
            settings.demonstrations,
            demonstrator=settings.demonstrator,
            recoveries=settings.recoveries,
            seed=settings.seed,
            progress=lambda done, _: advance(done, ""),
            **settings.training_kwargs,
        )
    model, tokenizer = loaded or _tiny(settings, transcripts)
    if settings.sft_steps:
        _imitate(model, tokenizer, transcripts, settings, run, watch)
    save(model, tokenizer, folder, settings)
    return model, tokenizer


def load_prepared(settings: TrainSettings, run: Run) -> Pair:
    """Return the checkpoint `sft` if there is one, otherwise the model that the settings specify.

    The tiny model is loaded on the CPU.

    Raises:
        ConfigurationError: If the model cannot be loaded.
    """
    how: dict[str, Any] = {"for_training": True, "dtype": settings.dtype}
    folder = run.checkpoints / SFT
    if folder.is_dir():
        return load_model(str(folder), device="cpu" if settings.is_tiny else None, **how)
    if settings.chat_template is not None:
        text = (run.path / TEMPLATE).read_text(encoding="utf-8")
        how["chat_template"] = ChatTemplate(settings.chat_template, text)
    return load_model(settings.model, **how)


def save(
    model: PreTrainedModel | Adapter,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    settings: TrainSettings | None = None,
) -> None:
    """Write a checkpoint folder atomically, replacing one of the same name.

    Args:
        model: The model.
        tokenizer: Tokenizer of the model.
        folder: The checkpoint folder.
        settings: Settings of the run, which are saved for evaluations of the checkpoint.
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
    """Write the environment of the run's evaluations into a checkpoint folder."""
    write_origin(folder, settings.env_id, settings.evaluation_kwargs, settings.max_new_tokens)


def for_this_machine(settings: TrainSettings) -> TrainSettings:
    """Return the settings with the data type that `dtype="auto"` selects on this machine."""
    if settings.dtype != "auto":
        return settings
    dtype = "float32" if settings.is_tiny or settings.needs_float32 else fast_dtype()
    return settings.model_copy(update={"dtype": dtype})


def use_threads(settings: TrainSettings) -> int:
    """Set the number of PyTorch threads and return the number.

    The tiny model uses one thread, unless `OMP_NUM_THREADS` is set, so its results do not depend on
    the number of cores. A second thread makes the tiny model a third faster on an idle machine with
    two cores, but ten times slower on a busy one. Pretrained models use PyTorch's default.
    """
    if settings.is_tiny and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    return torch.get_num_threads()


def adapter_config(settings: TrainSettings) -> Any:
    """Return the PEFT `LoraConfig` for the setting `lora`, or None without LoRA.

    Raises:
        ConfigurationError: If peft is not installed.
    """
    if not settings.lora:
        return None
    return lora_config(settings.lora_rank, settings.lora_alpha, settings.lora_targets)


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
) -> None:
    tools = registration.make(settings.env_id, **settings.training_kwargs).tool_schemas()
    examples = [e for each in transcripts for e in examples_of(each, tools, tokenizer)]
    how = SftSettings(
        settings.sft_steps,
        settings.sft_batch,
        settings.sft_learning_rate,
        ramp=min(20, settings.sft_steps // 5),
        seed=settings.seed,
        matrix_rate=settings.sft_matrix_rate,
        tokens_per_pass=settings.tokens_per_pass,
        gradient_checkpointing=bool(settings.gradient_checkpointing),
        alike=settings.sft_alike,
    )
    config = adapter_config(settings) if settings.has_adapter_from_start else None
    adapter = None if config is None else Adapter(model, config, settings.seed)

    with (
        watch.phase("imitation", settings.sft_steps) as advance,
        torch.random.fork_rng(),  # models with dropout use the global random state
    ):
        torch.manual_seed(settings.seed)

        def on_step(numbers: dict[str, float]) -> None:
            run.log_metrics({"phase": SFT, **numbers})
            advance(int(numbers["step"]), f"loss {numbers['loss']:.3f}")

        train_supervised(model, examples, how, on_step)
    if adapter is not None:
        adapter.merge()
