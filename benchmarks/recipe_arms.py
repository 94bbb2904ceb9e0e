"""What reinforcement learning adds to the warm-up of a recipe: seeds, a control, more imitation.

    toolgym recipe smollm2
    python benchmarks/recipe_arms.py runs/smollm2 --arms recipe grpo-1 grpo-2 shuffled-1 imitation

Every arm begins with the weights that the recipe's warm-up ended with, and has the settings of the
recipe but for what its name says:

    recipe           the recipe's own reinforcement learning, which is gone on with if need be
    grpo-SEED        the same with another seed
    shuffled-SEED    the same, but each rollout gets the reward of another one
    imitation        demonstrations instead, for `--imitation` steps; choose as many as take as long

Each is trained in a process of its own, `--workers` at a time, which share the threads of the
machine; one with a model of 135 million parameters takes up to 8 GB of memory. Then it plays tasks
greedily, as the warm-up does: those of a split that nobody trained on and nothing was chosen by,
and with `--spider` questions of Spider. The table compares each with the warm-up, task by task.
`--picture` draws the share of right rollouts as the arms were trained. What is there already is not
done again: the same command goes on where it was interrupted, and makes table and picture anew.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolgym.commands import load_environments
from toolgym.processes import usable_cores
from toolgym.report.plots.vega import Chart
from toolgym.runs.episodes import create_evaluation, finish_evaluation, log_episode
from toolgym.runs.paired import compare_folders
from toolgym.runs.run import Run

WARMUP, RECIPE, IMITATION = "warm-up", "recipe", "imitation"
GRPO, SHUFFLED = "grpo-", "shuffled-"
ARMS = [RECIPE, f"{GRPO}1", f"{GRPO}2", f"{SHUFFLED}1", IMITATION]
_SECONDS = ("rollout_seconds", "update_seconds")  # metrics of a step
_AVERAGED = 8  # steps of a curve


@dataclass(frozen=True)
class Job:
    """What was asked for.

    Attributes:
        run: The run folder of the recipe.
        out: Where arms and evaluations go.
        imitation: Steps of the arm that imitates on.
        rate: Its learning rate at its highest.
        dataset: What the arms are measured on,
        split: a part of that,
        tasks: and so many of its tasks.
        spider: A folder in Spider's layout; its `dev` is played too.
    """

    run: Path
    out: Path
    imitation: int
    rate: float
    dataset: str
    split: str
    tasks: int
    spider: Path | None

    @property
    def warmup(self) -> Path:
        """The weights that all arms begin with."""
        return self.run / "checkpoints" / "warmup"

    def folder(self, arm: str) -> Path:
        """The run folder of an arm."""
        return self.run if arm in (WARMUP, RECIPE) else self.out / arm

    def weights(self, arm: str) -> Path:
        """The weights that an arm ended with."""
        return self.warmup if arm == WARMUP else self.folder(arm) / "checkpoints" / "final"

    def test_sets(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Names and arguments of the environments that all are measured in."""
        yield f"{self.dataset}-{self.split}", {"dataset": self.dataset, "split": self.split}
        if self.spider is not None:
            yield "spider-dev", {"dataset": str(self.spider), "split": "dev"}

    def played(self, arm: str, name: str) -> Path:
        """The folder of an evaluation of an arm."""
        return self.out / "played" / arm / name


def train(job: Job, arm: str) -> None:
    """Train an arm to its end, from the warm-up or from where it was interrupted."""
    from adapters.commands import train_run
    from adapters.training.runs.settings import TrainSettings, read_settings

    folder = job.folder(arm)
    if (folder / "config.json").is_file():
        if not Run.open(folder).is_complete:
            train_run.resume(folder, quiet=True)
        return
    begun = read_settings(Run.open(job.run).config["settings"])
    changes: dict[str, Any] = {
        "model": str(job.warmup),
        "chat_template": None,  # it is the tokenizer's own now
        "preflight": False,
        "warmup_eval_every": 0,
        "warmup_checkpoint": "last",
        "eval_tasks": 48,
        "eval_tries": 0,
    }
    if arm == IMITATION:
        # Other demonstrations than those of the warm-up, which had the seed of the recipe.
        changes |= {"steps": 0, "seed": begun.seed + 1, "warmup_learning_rate": job.rate}
        changes |= {"warmup_steps": job.imitation}
        changes |= {"demonstrations": job.imitation * begun.warmup_batch}
    else:
        changes |= {"warmup_steps": 0, "seed": int(arm.rpartition("-")[2])}
        changes |= {"control": "shuffled-rewards"} if arm.startswith(SHUFFLED) else {}
    settings = TrainSettings.model_validate({**begun.model_dump(), **changes})
    train_run.start(settings, folder, quiet=True)


def play(job: Job, arm: str) -> None:
    """Measure an arm, unless it was."""
    from adapters.reference.evaluation import BatchPlay
    from adapters.training.models.chat_policy import load_model
    from adapters.training.runs.playing import MEASURED_ON, Asked, evaluation_of
    from adapters.training.runs.settings import read_settings
    from toolgym import registration

    settings = read_settings(Run.open(job.run).config["settings"])
    left = [each for each in job.test_sets() if not is_played(job.played(arm, each[0]))]
    if not left:
        return
    model, tokenizer = load_model(str(job.weights(arm)), for_training=True, dtype=settings.dtype)
    for name, where in left:
        kwargs = {**settings.env_kwargs, **where}
        tasks = registration.make(settings.env_id, **kwargs).tasks
        ids = tasks.shuffle(MEASURED_ON).first_playable(job.tasks).ids
        asked = Asked(kwargs, ids)
        played = BatchPlay()(model, tokenizer, settings, asked, lambda done: None)
        about = {"env_id": settings.env_id, "policy": arm, "dataset": where["dataset"]}
        run = create_evaluation(
            job.played(arm, name), {**about, "settings": {"env_kwargs": kwargs}}
        )
        for record in played:
            log_episode(run, record)
        finish_evaluation(run, evaluation_of(asked, played), {"name": name, "temperature": 0.0})


def is_played(folder: Path) -> bool:
    """Whether an evaluation came to its end; what is left of one that did not is put aside."""
    if not (folder / "config.json").is_file():
        return False
    if Run.open(folder).is_complete:
        return True
    folder.rename(folder.with_name(f"{folder.name}-cut-off-{time.time_ns()}"))
    return False


def work_through(arms: Sequence[str], workers: int, threads: int) -> None:
    """Train and measure the arms, each in a process of its own.

    Raises:
        SystemExit: One failed; the others come to their end first.
    """
    waiting, running, failed = list(arms), dict[str, subprocess.Popen[bytes]](), list[str]()
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    while waiting or running:
        while waiting and len(running) < workers:
            arm = waiting.pop(0)
            command = [sys.executable, __file__, *sys.argv[1:], "--only", arm]
            running[arm] = subprocess.Popen(command, env=environment)
            print(f"{time.strftime('%H:%M:%S')} {arm} begins", file=sys.stderr)
        time.sleep(1)
        for arm in [arm for arm, process in running.items() if process.poll() is not None]:
            status = running.pop(arm).returncode
            failed += [arm] if status else []
            word = f"failed with status {status}" if status else "is done"
            print(f"{time.strftime('%H:%M:%S')} {arm} {word}", file=sys.stderr)
    if failed:
        sys.exit(f"{', '.join(failed)} failed: the same command tries again.")


def table(job: Job, arms: Sequence[str]) -> Iterator[str]:
    """Rows of Markdown: each arm, and how it compares with the warm-up on each set of tasks."""
    for name, _ in job.test_sets():
        yield f"\n{name}\n"
        yield "| arm | right | against the warm-up, 95 % interval | gained, lost | minutes |"
        yield "|---|---|---|---|---|"
        for arm in arms:
            figures = Run.open(job.played(arm, name)).summary["evaluations"][0]["after"]
            low, high = figures["interval"]
            right = f"{figures['accuracy']:.1%} [{low:.1%}, {high:.1%}] of {figures['episodes']}"
            yield f"| {arm} | {right} | {_against(job, arm, name)} | {_minutes(job, arm)} |"


def _against(job: Job, arm: str, name: str) -> str:
    if arm == WARMUP:
        return " | "
    (compared,) = compare_folders(job.played(WARMUP, name), job.played(arm, name))
    result = compared.result
    points = [100 * v for v in (result.difference.value, result.difference.low)]
    points += [100 * result.difference.high]
    change = "{:+.1f} points [{:+.1f}, {:+.1f}]".format(*points)
    return f"{change} | {len(result.gained)}, {len(result.lost)}"


def _minutes(job: Job, arm: str) -> str:
    if arm == WARMUP:
        return ""
    steps = Run.open(job.folder(arm)).metrics("warmup" if arm == IMITATION else "grpo")
    seconds = [step.get(name, 0.0) for step in steps for name in _SECONDS]
    return f"{sum(seconds) / 60:.0f}" if arm != IMITATION else f"{len(steps)} steps"


def picture(job: Job, arms: Sequence[str]) -> Chart:
    """The share of right rollouts in each step of the arms that were reinforced, as running means.

    A step of few groups is right by the luck of its tasks, so steps are averaged.
    """
    from toolgym.report.charts import running_mean
    from toolgym.report.plots.lines import Line, line_plot

    lines = []
    for style, arm in enumerate(arm for arm in arms if arm not in (IMITATION, WARMUP)):
        steps = list(Run.open(job.folder(arm)).metrics("grpo"))
        shares = running_mean([step["accuracy"] for step in steps], _AVERAGED)
        lines.append(Line(arm, style, [float(step["step"]) for step in steps], shares))
    note = f"Right rollouts on training tasks, mean of {_AVERAGED} steps."
    drawing = line_plot(lines, note, "step", "share")
    return Chart("Right rollouts while they are reinforced", note, drawing, has_legend=True)


def check_arms(parser: argparse.ArgumentParser, arms: Sequence[str]) -> Sequence[str]:
    """The arms, if there are such."""
    for arm in arms:
        if arm not in (RECIPE, IMITATION) and not re.fullmatch(rf"({GRPO}|{SHUFFLED})\d+", arm):
            parser.error(f"there is no arm {arm!r}: name some as {', '.join(ARMS)}")
    return arms


def main() -> None:
    """Train what is not trained, measure what is not measured, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", type=Path, help="what toolgym recipe wrote, such as runs/smollm2")
    parser.add_argument("--out", type=Path, help="else the folder arms in that of the recipe")
    parser.add_argument("--arms", nargs="+", default=ARMS, help="else those of the example")
    parser.add_argument("--imitation", type=int, default=80, help="its steps")
    parser.add_argument("--rate", type=float, default=1e-4, help="of imitation, at its highest")
    parser.add_argument("--dataset", default="bundled")
    parser.add_argument("--split", default="test")
    parser.add_argument("--tasks", type=int, default=851)
    parser.add_argument("--spider", type=Path, help="a folder in Spider's layout, to measure on")
    parser.add_argument("--workers", type=int, default=2, help="arms at a time")
    parser.add_argument("--picture", type=Path, help="a PNG file to draw the arms' curves into")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    given = parser.parse_args()
    job = Job(
        given.recipe / "train",
        given.out or given.recipe / "arms",
        given.imitation,
        given.rate,
        given.dataset,
        given.split,
        given.tasks,
        given.spider,
    )
    load_environments()
    if given.only:
        if given.only != WARMUP:
            train(job, given.only)
        return play(job, given.only)
    arms = check_arms(parser, given.arms)
    work_through([*arms, WARMUP], given.workers, max(1, usable_cores() // given.workers))
    print("\n".join(table(job, [WARMUP, *arms])))
    if given.picture:
        from toolgym.report.library import picture_of

        given.picture.write_bytes(picture_of(picture(job, arms)))


if __name__ == "__main__":
    main()
