"""Evaluations during GRPO: on which tasks, after which steps, which weights are kept."""

import hashlib
import itertools
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import hypothesis
from hypothesis import given
from hypothesis import strategies as st

from adapters.commands.train_run import results, train
from adapters.training.runs.evaluations import choose_tasks, evaluations, selection_source
from adapters.training.runs.grpo import is_due
from adapters.training.runs.progress import NoProgress
from adapters.training.settings import TrainSettings, resolve
from toolgym import ConfigurationError, registration
from toolgym.report import write_report
from toolgym.runs.metrics import METRICS
from toolgym.runs.run import Run
from toolgym.unseen import TASKS

pytestmark = pytest.mark.torch

EXPLORE, NOTES = "sqlgym/Explore-v0", "trl-tests/Notes-v0"
SELECTING = {"eval_every": 2, "selection_tasks": 3}


def small(**changes: Any) -> TrainSettings:
    values: dict[str, Any] = {
        "env_kwargs": {"dataset": "tiny", "step_limit": 3},
        "split": "dev",
        "eval_split": "dev-databases",
        "demonstrations": 24,
        "sft_steps": 8,
        "sft_batch": 4,
        "steps": 4,
        "save_every": 2,
        "group_size": 2,
        "prompts": 2,
        "eval_tasks": 4,
        "eval_tries": 0,
        "max_new_tokens": 8,
        "max_completion_length": 24,
        "learning_rate": 1e-3,
        "preflight": False,
        "trainer": "reference",
    }
    return resolve(EXPLORE, **{**values, **changes})


def trained(folder: Path, settings: TrainSettings, watch: Any = None) -> Run:
    run = Run.create(folder, {"settings": settings.model_dump()})
    train(run, settings, watch or NoProgress())
    return run


def weights(run: Run, name: str) -> str:
    return hashlib.sha256((run.checkpoints / name / "model.safetensors").read_bytes()).hexdigest()


def without_clock(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Metrics that two runs of the same settings agree on."""
    seconds = {key for key, metric in METRICS.items() if metric.source == "clock"}
    return [{k: v for k, v in line.items() if k not in seconds} for line in lines]


def marks(settings: TrainSettings, env_kwargs: dict[str, Any], ids: Any) -> set[str]:
    env = registration.make(settings.env_id, **env_kwargs)
    return {m for each in ids for m in env.family.marks(env.tasks.get(each), TASKS)}


@pytest.mark.parametrize(
    ("dataset", "eval_tasks", "selection", "every"),
    [
        ("tiny", 20, 10, 10),
        pytest.param("bundled", 1000, 1000, 10, marks=pytest.mark.integration),
        pytest.param("tiny", 192, 64, 1, marks=pytest.mark.nightly),
        pytest.param("bundled", 40, 20, 1, marks=pytest.mark.nightly),
    ],
)
def test_selection_tasks_are_neither_reported_nor_trained_on(
    dataset: str, eval_tasks: int, selection: int, every: int
) -> None:
    settings = resolve(
        EXPLORE,
        env_kwargs={"dataset": dataset},
        eval_tasks=eval_tasks,
        selection_tasks=selection,
        eval_every=1,
    )
    planned = evaluations(settings)
    reported, selected = choose_tasks(settings, planned)
    source = selection_source(planned)

    assert source.unseen[-1] == "databases"
    taken = marks(settings, source.env_kwargs, selected)
    for each in planned:
        assert reported[each.suffix]
        assert not marks(settings, each.env_kwargs, reported[each.suffix]) & taken
    trained_on = registration.make(EXPLORE, **settings.training_kwargs).tasks.ids[::every]
    assert not taken & marks(settings, settings.training_kwargs, trained_on)
    playable = registration.make(EXPLORE, **source.env_kwargs).tasks.playable()
    assert len(selected) == min(selection, len(playable) // 3)


def test_with_enough_tasks_evaluations_play_what_they_play_without_selection() -> None:
    settings = resolve(
        EXPLORE, env_kwargs={"dataset": "tiny"}, eval_every=5, eval_tasks=12, selection_tasks=6
    )
    without = settings.model_copy(update={"eval_every": 0})
    planned = evaluations(settings)
    assert choose_tasks(settings, planned)[0] == choose_tasks(without, planned)[0]


def test_with_too_few_tasks_there_is_no_selection_and_early_stopping_is_refused() -> None:
    settings = resolve(NOTES, env_kwargs={"size": 1}, eval_every=5, steps=20)
    settings = settings.model_copy(update={"split": None, "eval_split": None})
    planned = evaluations(settings)
    assert choose_tasks(settings, planned)[1] == []
    for name, value in (("patience", 2), ("checkpoint", "best")):
        strict = settings.model_copy(update={name: value})
        with pytest.raises(
            ConfigurationError, match=r"notes has only 1 tasks, .* too few .* Remove"
        ):
            choose_tasks(strict, planned)


@pytest.mark.parametrize(("steps", "every"), [(0, 0), (4, 0), (10, 5), (60, 15), (1000, 250)])
def test_a_training_is_evaluated_four_times_by_default(steps: int, every: int) -> None:
    assert resolve(NOTES, steps=steps).eval_every == every
    assert resolve(NOTES, steps=max(1, steps), eval_every=3).eval_every == 3


@hypothesis.settings(max_examples=60)
@given(st.integers(1, 7), st.integers(1, 40), st.integers(1, 4), st.sets(st.integers(1, 40)))
def test_no_interval_is_skipped_and_the_first_and_last_weights_are_evaluated(
    every: int, steps: int, stride: int, killed: set[int]
) -> None:
    done: list[int] = []
    reached = [0, *range(stride, steps, stride), steps]
    for step in reached:
        for _ in range(1 + (step in killed)):  # a resumed run asks again
            if is_due(step, every, steps, done):
                done.append(step)
    assert (done[0], done[-1], len(done)) == (0, steps, len(set(done)))
    assert all(b // every > a // every or b == steps for a, b in itertools.pairwise(done))
    assert {next(r for r in reached if r >= s) for s in range(0, steps, every)} <= set(done)


@pytest.fixture(scope="module")
def selecting(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("selecting") / "run", small(**SELECTING))


@pytest.mark.parametrize(
    "trainer",
    [
        pytest.param("reference", marks=pytest.mark.integration),
        pytest.param("trl", marks=pytest.mark.nightly),
    ],
)
def test_the_training_is_the_same_to_the_bit_with_and_without(trainer: str, tmp_path: Path) -> None:
    plain = trained(tmp_path / "plain", small(trainer=trainer))
    selecting = trained(tmp_path / "selecting", small(trainer=trainer, **SELECTING))

    assert weights(selecting, "final") == weights(plain, "final")
    for phase in ("sft", "grpo"):
        assert without_clock(selecting.metrics(phase)) == without_clock(plain.metrics(phase))
    assert [line["step"] for line in selecting.metrics("selection")] == [0, 2, 4]
    assert selecting.summary["after"] == plain.summary["after"]
    assert "selection" not in plain.summary


@pytest.mark.integration
def test_figures_are_in_metrics_summary_and_report(selecting: Run) -> None:
    lines = selecting.metrics("selection")
    assert [line["step"] for line in lines] == [0, 2, 4]
    for line in lines:
        low, high = line["held_out_low"], line["held_out_high"]
        assert 0 <= low <= line["held_out_accuracy"] + 1e-9 <= high <= 1
    told = selecting.summary["selection"]
    assert (told["name"], told["tasks"]) == ("unseen databases", 3)
    assert (told["checkpoint"], told["last_step"]) == ("last", 4)
    played = {(r["step"], r["task_id"]) for r in selecting.rollouts("selection")}
    assert len(played) == 9
    reported = {r["task_id"] for phase in ("before", "after") for r in selecting.rollouts(phase)}
    assert not reported & {task for _, task in played}
    page = write_report(selecting).read_text(encoding="utf-8")
    assert "held out accuracy" in page
    assert "The last weights were kept." in page


@pytest.mark.parametrize(
    "trainer",
    [
        pytest.param("reference", marks=pytest.mark.integration),
        pytest.param("trl", marks=pytest.mark.nightly),
    ],
)
def test_training_ends_after_patience_and_the_best_weights_are_kept(
    trainer: str, tmp_path: Path
) -> None:
    settings = small(**SELECTING, trainer=trainer, patience=1, checkpoint="best", steps=6)
    run = trained(tmp_path / "run", settings)

    # A model after eight supervised steps is never right: the first evaluation stays the best.
    told = run.summary["selection"]
    assert (told["best_step"], told["last_step"]) == (0, 2)
    assert [line["step"] for line in run.metrics("grpo")] == [1, 2]
    assert weights(run, "final") == weights(run, "best") == weights(run, "sft")
    assert "The best weights were kept." in run.summary["kept"]
    assert "The last was after step 2 of 6" in run.summary["kept"]

    run.write_summary({**run.summary, "after": None, "status": "interrupted"})
    train(run, settings, NoProgress())
    assert [line["step"] for line in run.metrics("grpo")] == [1, 2]
    assert weights(run, "final") == weights(run, "sft")


@pytest.mark.nightly
def test_an_adapter_is_kept_and_merged_as_it_was_at_its_best(tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="needs the extra `train`")
    settings = small(**SELECTING, trainer="trl", lora=True, checkpoint="best", steps=2)
    run = trained(tmp_path / "run", settings)

    assert (run.checkpoints / "best" / "adapter_config.json").is_file()
    assert run.summary["selection"]["best_step"] == 0
    assert weights(run, "final") == weights(run, "sft")


@pytest.mark.integration
def test_imitation_alone_is_evaluated_once(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", small(steps=0))

    summary = run.summary
    assert (summary["status"], summary["before"]) == ("complete", None)
    assert "is 0.0% (greedy, 4 episodes) after supervised training alone" in summary["gain"]
    assert summary["after"]["episodes"] == 4
    assert run.metrics("grpo") == []
    assert weights(run, "final") == weights(run, "sft")
    assert list(results(run).columns[0].cells) == ["unseen databases, after"]
