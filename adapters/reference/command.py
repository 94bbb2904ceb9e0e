"""The command `python -m adapters.reference.train`."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from adapters.reference.config import ReferenceConfig, reference_config
from adapters.reference.processes import Processes
from adapters.reference.train import Player, ReferenceTrainer, evaluate
from adapters.training.models.chat_policy import load_model
from adapters.training.models.low_rank import Adapter, lora_config
from toolgym.commands import say
from toolgym.errors import ToolgymError
from toolgym.records import EpisodeRecord

_SHOWN = ("reward", "accuracy", "validity", "entropy", "kl", "grad_norm", "rollout_seconds")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a model, and print the metrics of each step.

    Args:
        arguments: Those of the command line by default.
    """
    given = _parser().parse_args(arguments)
    logging.basicConfig(format="%(message)s")
    settings = {name: vars(given)[name] for name in ReferenceConfig.model_fields if name in given}
    try:
        _train(given, reference_config(settings))
    except ToolgymError as problem:
        raise SystemExit(f"{type(problem).__name__}: {problem}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m adapters.reference.train",
        description="Train a chat model with GRPO on a tool environment. Metrics and checkpoints go"
        " to a folder; the same command resumes from the last checkpoint. With torchrun several"
        " processes share the tasks of a batch.",
    )
    parser.add_argument("model", help="folder or hub id of a chat model")
    parser.add_argument("env_id", help="environment, such as sqlgym/Explore-v0")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/reference"), help="folder of the run"
    )
    parser.add_argument(
        "--env", type=_mapping, default={}, help='arguments of the environment: {"dataset": "x.db"}'
    )
    parser.add_argument(
        "--eval-env", type=_mapping, help='those of evaluations: {"split": "dev"}; default: none'
    )
    parser.add_argument("--eval-every", type=int, default=20, help="steps between evaluations (20)")
    parser.add_argument("--eval-tasks", type=int, default=64, help="tasks of an evaluation (64)")
    parser.add_argument("--lora-rank", type=int, help="train a LoRA adapter of this rank")
    group = parser.add_argument_group("settings of the training")
    for name, info in ReferenceConfig.model_fields.items():
        default = info.get_default(call_default_factory=True)
        shown = (
            default.model_dump(exclude_defaults=True) if hasattr(default, "model_dump") else default
        )
        text = " ".join((info.description or "").split()).replace("%", "%%")
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=yaml.safe_load,
            metavar="VALUE",
            default=argparse.SUPPRESS,
            help=f"{text} (default: {json.dumps(shown)})",
        )
    return parser


def _mapping(text: str) -> dict[str, Any]:
    value = yaml.safe_load(text)
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is no mapping such as {{split: dev}}")
    return value


def _train(given: argparse.Namespace, config: ReferenceConfig) -> None:
    model, tokenizer = load_model(given.model, for_training=True, dtype=config.dtype)
    player: list[Player] = []

    def held_out(step: int, adapter: Adapter | None) -> Mapping[str, float]:
        if given.eval_env is None or (step % given.eval_every and step < config.steps):
            return {}
        if not player:
            kwargs = {**given.env, **given.eval_env}
            player.append(Player(model, tokenizer, given.env_id, kwargs, slots=config.at_once))
        ids = player[0].env.tasks.first_playable(given.eval_tasks).ids
        found = evaluate(player[0], ids, config.max_completion_length)
        low, high = found.interval
        say(f"step {step}: held-out accuracy {found.accuracy:.3f} ({low:.3f} to {high:.3f})")
        return {"held_out_accuracy": found.accuracy, "held_out_episodes": float(found.episodes)}

    def on_step(step: int, metrics: dict[str, float], episodes: list[EpisodeRecord]) -> None:
        with (given.out / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"step": step, **metrics}) + "\n")
        shown = ", ".join(f"{name} {metrics[name]:.3g}" for name in _SHOWN if name in metrics)
        say(f"step {step} of {config.steps}: {shown}")

    given.out.mkdir(parents=True, exist_ok=True)
    trainer = ReferenceTrainer(
        model,
        tokenizer,
        given.env_id,
        given.out,
        config,
        env_kwargs=given.env,
        lora=lora_config(given.lora_rank, 2 * given.lora_rank, "all-linear")
        if given.lora_rank
        else None,
        on_step=on_step,
        evaluate=held_out,
    )
    trainer.train()
    if trainer.adapter is not None:
        trainer.adapter.merge()
    if Processes().is_main:
        model.save_pretrained(given.out / "final")
        tokenizer.save_pretrained(given.out / "final")
        say(f"The trained model is in {given.out / 'final'}.")
