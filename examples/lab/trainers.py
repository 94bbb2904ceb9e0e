"""Compare trainers: plain TRL, TRL with toolgym's rollouts and guards, and the reference trainer.

For each seed, the tiny model of `toolgym train sqlgym/Explore-v0` is trained on demonstrations
once. Every arm then trains it for the same number of updates, with the same group size, tasks per
step, learning rate and sampling. All other settings are the defaults of the arm:

    TRL, strict tools             `GRPOTrainer` with `environment_factory(..., parsing="strict")`
    TRL, lenient tools            the same with the default parsing
    Rollouts and guards           `GRPOTrainer` with `Rollouts`, `grpo_config` and `GuardCallback`
    reference trainer             `adapters.reference.train`
    Rollouts and guards, 3 draws  with dynamic sampling, which plays more rollouts

The evaluations are those of `toolgym train`. It requires the extra `train`.

    python examples/lab/trainers.py
    python examples/lab/trainers.py --arms trl --seeds 0 --cache starts --out rows.jsonl
    python examples/lab/trainers.py --table rows.jsonl
    python examples/lab/trainers.py --rate 4

A group is dead if all its rollouts have the same outcome. Groups that dynamic sampling replaced
count too. A training has collapsed if the share of valid turns or of correct answers in its last
ten steps is less than half of that in its best ten consecutive steps.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
import transformers
from tables import print_table
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.trainer_callback import PrinterCallback
from transformers.utils.logging import disable_progress_bar
from trl import GRPOConfig, GRPOTrainer

from adapters.reference.evaluation import Evaluator
from adapters.reference.train import ReferenceTrainer
from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.runs.evaluations import choose_tasks, evaluations
from adapters.training.runs.preparation import load_prepared, prepare
from adapters.training.runs.progress import NoProgress
from adapters.training.settings import TrainSettings, resolve
from adapters.trl import RolloutEnvironment, environment_factory, training_dataset
from toolgym.records import EpisodeRecord
from toolgym.runs.metrics import recorded
from toolgym.runs.run import CONFIG, Run

ENVIRONMENT: Final = "sqlgym/Explore-v0"
WINDOW: Final = 10
"""Number of steps that means are taken over."""
SHOWN: Final = ("accuracy", "validity", "dead_groups")
"""Metrics of a step that are printed during the training and kept in the row."""
Step = Mapping[str, float]
Row = dict[str, Any]


class Job(NamedTuple):
    """One training.

    Attributes:
        model: Model after supervised training; it is trained in place.
        tokenizer: Tokenizer of the model.
        settings: Settings of the training.
        folder: Empty folder.
        tell: Callback for the metrics of each step, by the names of `toolgym.runs.metrics`.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    settings: TrainSettings
    folder: Path
    tell: Callable[[Step], None]

    @property
    def tasks(self) -> int:
        """The number of tasks of all steps, without those that dynamic sampling draws."""
        return self.settings.steps * self.settings.prompts

    @property
    def trl_options(self) -> dict[str, Any]:
        """Arguments for every config of TRL: sizes, learning rate and machine."""
        settings = self.settings
        return {
            "output_dir": str(self.folder),
            "seed": settings.seed,
            "max_steps": settings.steps,
            "num_generations": settings.group_size,
            "per_device_train_batch_size": settings.group_size * settings.prompts,
            "gradient_accumulation_steps": 1,
            "learning_rate": settings.learning_rate,
            "lr_scheduler_type": "constant",
            "adam_beta2": 0.98,
            "temperature": settings.temperature,
            "max_completion_length": settings.max_completion_length,
            "save_strategy": "no",
            "report_to": "none",
            "disable_tqdm": True,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "dataloader_pin_memory": False,
        }


# The arms.


def train_plainly(job: Job, parsing: str) -> None:
    """Train with TRL's `GRPOTrainer` and its own tool loop."""
    env_kwargs = {**job.settings.training_kwargs, "parsing": parsing}

    def record(environments: Sequence[RolloutEnvironment], **_: Any) -> list[None]:
        """Record the metrics of the environments; a reward function without a reward of its own."""
        played = [_figures(environment) for environment in environments]
        figures, rewards = zip(*played, strict=True)
        groups = [number // job.settings.group_size for number in range(len(played))]
        job.tell(recorded(batch_metrics(figures, rewards, groups)))
        return [None] * len(environments)

    trainer = GRPOTrainer(
        job.model,
        args=GRPOConfig(**job.trl_options),
        environment_factory=environment_factory(ENVIRONMENT, **env_kwargs),
        reward_funcs=record,
        train_dataset=training_dataset(
            ENVIRONMENT, n=job.tasks, seed=job.settings.seed, **env_kwargs
        ),
        processing_class=job.tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()


def _figures(environment: RolloutEnvironment) -> tuple[Figures, float]:
    """Return the counts and the score of a finished rollout."""
    episode = environment._playing.episode
    is_over = episode.over  # otherwise the model stopped, or TRL could not parse its message
    record = EpisodeRecord.of(episode, ENVIRONMENT)
    figures = Figures.of(record)
    return replace(figures, turns=figures.turns + (not is_over)), record.score


def train_with_rollouts(job: Job, max_draws: float) -> None:
    """Train with TRL's `GRPOTrainer` and the rollouts, settings and guards of `adapters.trl`."""
    from adapters.trl import GuardCallback, Rollouts, grpo_config

    rollouts = Rollouts(ENVIRONMENT, job.settings.training_kwargs, max_draws=max_draws)
    trainer = GRPOTrainer(
        job.model,
        args=grpo_config(**job.trl_options),
        rollout_func=rollouts,
        reward_funcs=rollouts.score,
        train_dataset=rollouts.dataset(n=job.tasks, seed=job.settings.seed),
        processing_class=job.tokenizer,
        callbacks=[
            GuardCallback(rollouts, on_step=lambda step, metrics, episodes: job.tell(metrics))
        ],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()


def train_with_reference(job: Job, max_draws: float) -> None:
    """Train with the reference trainer."""
    trainer = ReferenceTrainer(
        job.model,
        job.tokenizer,
        ENVIRONMENT,
        job.folder,
        job.settings.model_copy(update={"max_draws": max_draws}),
        env_kwargs=job.settings.training_kwargs,
        on_step=lambda step, metrics, episodes: job.tell(metrics),
    )
    trainer.train()


ARMS: Final[Mapping[str, Callable[[Job], None]]] = {
    "before training": lambda job: None,
    "TRL, strict tools": partial(train_plainly, parsing="strict"),
    "TRL, lenient tools": partial(train_plainly, parsing="lenient"),
    "Rollouts and guards": partial(train_with_rollouts, max_draws=1.0),
    "reference trainer": partial(train_with_reference, max_draws=1.0),
    "Rollouts and guards, 3 draws": partial(train_with_rollouts, max_draws=3.0),
}
NAMES: Final = dict(
    zip(("before", "strict", "trl", "rollouts", "reference", "draws"), ARMS, strict=True)
)
"""Arms by their names for `--arms`."""
COLUMNS: Final = {
    "unseen tasks": "right on unseen tasks",
    "unseen tasks, sampled": "the same, sampled",
    "unseen databases": "right on unseen databases",
    "dead_groups": f"dead groups, last {WINDOW} steps",
    "collapsed": "collapsed",
    "rollouts": "rollouts",
    "updates": "updates",
    "seconds": "processor seconds",
}


# One training.


def settings_of(seed: int, given: argparse.Namespace) -> TrainSettings:
    """Return the settings of `toolgym train sqlgym/Explore-v0` without periodic evaluations."""
    imitation = given.imitation
    settings = resolve(
        ENVIRONMENT,
        env_kwargs={"dataset": "tiny"},
        seed=seed,
        steps=given.steps,
        sft_steps=imitation,
        demonstrations=imitation and 4 * imitation,  # the default ratio
        eval_tasks=given.eval_tasks,
        eval_every=0,
    )
    return settings.model_copy(update={"learning_rate": given.rate * settings.learning_rate})


def imitated(
    settings: TrainSettings, folder: Path
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model after supervised training and its tokenizer, cached in the folder."""
    name = folder / f"seed-{settings.seed}-imitation-{settings.sft_steps}"
    is_there = (name / CONFIG).is_file()
    run = Run.open(name) if is_there else Run.create(name, {"settings": settings.model_dump()})
    prepare(settings, run, NoProgress())
    return load_prepared(settings, run)


def accuracies(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: TrainSettings
) -> dict[str, float | None]:
    """Return the accuracy in each evaluation of `toolgym train`, by its name."""
    evaluator, planned = Evaluator(model, tokenizer, settings, NoProgress()), evaluations(settings)
    tasks, _ = choose_tasks(settings, planned)
    return {
        each.name: evaluator.play(each, tasks[each.suffix], "after").accuracy for each in planned
    }


def run(arm: str, seed: int, given: argparse.Namespace, folder: Path) -> Row:
    """Train once and return the row."""
    settings = settings_of(seed, given)
    model, tokenizer = imitated(settings, folder)
    history: list[Step] = []

    def tell(metrics: Step) -> None:
        history.append(metrics)
        if len(history) % WINDOW == 0:
            last = history[-WINDOW:]
            means = ", ".join(f"{key} {mean(last, key):.3f}" for key in SHOWN)
            say(f"{arm}, seed {seed}: step {len(history)} of {settings.steps}, {means}")

    stopped = ""
    began = time.process_time()  # independent of other work on the machine
    with tempfile.TemporaryDirectory() as empty:
        try:
            ARMS[arm](Job(model, tokenizer, settings, Path(empty), tell))
        except TrainingStopped as stop:
            stopped = str(stop)
            say(f"{arm}, seed {seed}: {stopped}")
    seconds = time.process_time() - began
    row: Row = {"arm": arm, "seed": seed, **accuracies(model, tokenizer, settings)}
    if history:
        row |= {
            "dead_groups": mean(history[-WINDOW:], "dead_groups"),
            "collapsed": has_collapsed(history),
            "rollouts": sum(step["rollouts"] for step in history),
            "updates": history[-1].get("updates", len(history)),
            "seconds": seconds,
            "stopped": stopped,
            "history": {key: [step.get(key) for step in history] for key in SHOWN},
        }
    return row


def mean(history: Sequence[Step], key: str) -> float:
    """Return the mean of a share over steps; a missing value counts as 0."""
    return sum(step.get(key, 0.0) for step in history) / len(history)


def has_collapsed(history: Sequence[Step]) -> bool:
    """Return whether valid turns or correct answers fell below half of their best."""
    starts = range(max(1, len(history) - WINDOW + 1))
    for key in ("accuracy", "validity"):
        means = [mean(history[start : start + WINDOW], key) for start in starts]
        if means[-1] < max(means) / 2:
            return True
    return False


def say(line: str) -> None:
    """Print a line on stderr."""
    print(line, file=sys.stderr, flush=True)


# The tables.


def print_tables(rows: Sequence[Row]) -> None:
    """Print a table of arms with means and ranges over seeds, and one of all trainings."""
    by_arm = {arm: [row for row in rows if row["arm"] == arm] for arm in ARMS}
    found = {arm: sorted(own, key=lambda row: row["seed"]) for arm, own in by_arm.items() if own}
    seeds = len({row["seed"] for row in rows})
    means = [[arm, *(_summary(own, key) for key in COLUMNS)] for arm, own in found.items()]
    print_table([f"{seeds} seed{'s' * (seeds != 1)}", *COLUMNS.values()], means)
    print()
    each = [
        [arm, str(row["seed"]), *(_summary([row], key) for key in COLUMNS)]
        for arm, own in found.items()
        for row in own
    ]
    print_table(["each training", "seed", *COLUMNS.values()], each)


def _summary(rows: Sequence[Row], key: str) -> str:
    values = [row[key] for row in rows if row.get(key) is not None]
    if not values:
        return ""
    if key == "collapsed":
        return f"{sum(values)} of {len(values)}"
    form = ",.0f" if key in ("rollouts", "updates", "seconds") else ".3f"
    value, low, high = (
        format(each, form) for each in (sum(values) / len(values), min(values), max(values))
    )
    return value if low == high else f"{value} ({low} to {high})"


def main() -> None:
    """Parse the command line, train, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--seeds", type=int, nargs="+", default=[0, 1, 2], help="random seeds (default: 0 1 2)")
    add(
        "--arms", nargs="+", choices=NAMES, default=list(NAMES), help="arms to train (default: all)"
    )
    add("--steps", type=int, help="updates per training (default: as toolgym train)")
    add("--rate", type=float, default=1.0, help="factor on the learning rate (default: 1)")
    add("--imitation", type=int, help="supervised steps (default: as toolgym train)")
    add("--eval-tasks", type=int, help="tasks per evaluation (default: as toolgym train)")
    add("--cache", type=Path, help="folder that keeps the models after supervised training")
    add("--out", type=Path, metavar="FILE", help="append one line of JSON per training")
    add(
        "--table", type=Path, nargs="+", metavar="FILE", help="only print the tables of these files"
    )
    given = parser.parse_args()
    if given.table:
        lines = [line for file in given.table for line in file.read_text("utf-8").splitlines()]
        return print_tables([json.loads(line) for line in lines])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in given.seeds:
            for name in given.arms:
                row = run(NAMES[name], seed, given, given.cache or Path(folder))
                rows.append(row)
                if given.out:
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
    print_tables(rows)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=FutureWarning)
    disable_progress_bar()
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)  # more threads are slower at this size
    main()
