"""Evaluation while a model is trained: which tasks, when, what is kept, and no trace of it."""

import hashlib
import itertools
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import hypothesis
import torch
from hypothesis import given
from hypothesis import strategies as st

from adapters.commands.train_run import divided_if_possible, results, trainer_named
from adapters.training.models.weights import read_weights
from adapters.training.runs import phases
from adapters.training.runs.evaluations import Evaluation, evaluations
from adapters.training.runs.playing import Asked
from adapters.training.runs.progress import NoProgress
from adapters.training.runs.selection import (
    Division,
    HeldOut,
    Stage,
    best_of,
    divide,
    is_enough,
    stages,
)
from adapters.training.runs.settings import TrainSettings, resolve
from tests.adapters.interrupting import Interrupt
from toolgym import ConfigurationError, registration
from toolgym.records import EpisodeRecord
from toolgym.report import write_report
from toolgym.runs.metrics import METRICS
from toolgym.runs.run import Run
from toolgym.unseen import TASKS

pytestmark = pytest.mark.torch

EXPLORE, NOTES = "sqlgym/Explore-v0", "trl-tests/Notes-v0"
WATCHED = {"eval_every": 2, "sft_eval_every": 4, "selection_tasks": 3}


def small(**changes: Any) -> TrainSettings:
    values: dict[str, Any] = {
        "env_kwargs": {"dataset": "tiny", "step_limit": 3},
        "split": "dev",
        "evaluation_split": "dev-databases",
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
    phases.train(run, settings, trainer_named(settings.trainer), watch or NoProgress())
    return run


def weights(run: Run, name: str) -> str:
    return hashlib.sha256((run.checkpoints / name / "model.safetensors").read_bytes()).hexdigest()


def without_clock(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seconds = {key for key, metric in METRICS.items() if metric.source == "clock"}
    return [{k: v for k, v in line.items() if k not in seconds} for line in lines]


# Which tasks --------------------------------------------------------------------------------------


def marks(settings: TrainSettings, env_kwargs: dict[str, Any], ids: Any) -> set[str]:
    env = registration.make(settings.env_id, **env_kwargs)
    return {m for each in ids for m in env.family.marks(env.tasks.get(each), TASKS)}


@pytest.mark.parametrize(
    ("dataset", "eval_tasks", "selection", "expected", "every"),
    [
        ("tiny", 20, 10, 10, 10),
        ("bundled", 1000, 1000, None, 10),
        pytest.param("tiny", 192, 64, 64, 1, marks=pytest.mark.nightly),
        pytest.param("bundled", 40, 20, 20, 1, marks=pytest.mark.nightly),
    ],
)
def test_selection_tasks_are_none_of_those_that_are_reported(
    dataset: str, eval_tasks: int, selection: int, expected: int | None, every: int
) -> None:
    settings = resolve(
        EXPLORE,
        env_kwargs={"dataset": dataset},
        eval_tasks=eval_tasks,
        selection_tasks=selection,
        eval_every=1,
    )
    planned = evaluations(settings)
    division = divide(settings, planned)

    assert division.source.unseen[-1] == "databases"
    chosen = marks(settings, division.source.env_kwargs, division.selection)
    for each in division.reports:
        assert each.task_ids
        assert not marks(settings, each.env_kwargs, each.task_ids) & chosen
    trained_on = registration.make(EXPLORE, **settings.training_kwargs).tasks.ids[::every]
    assert not chosen & marks(settings, settings.training_kwargs, trained_on)
    if expected is not None:
        assert len(division.selection) == expected
    else:  # a third of what there is
        tasks = registration.make(EXPLORE, **division.source.env_kwargs).tasks.playable()
        assert len(division.selection) == len(tasks) // 3


def test_with_tasks_enough_the_reports_play_what_they_play_without_selection() -> None:
    settings = resolve(
        EXPLORE, env_kwargs={"dataset": "tiny"}, eval_every=5, eval_tasks=12, selection_tasks=6
    )
    for each in divide(settings, evaluations(settings)).reports:
        tasks = registration.make(EXPLORE, **each.env_kwargs).tasks
        assert list(each.task_ids or ()) == tasks.shuffle(0).first_playable(each.played).ids


def test_too_few_tasks_cannot_choose_and_report() -> None:
    settings = resolve(NOTES, eval_every=1)
    only = Evaluation("unseen tasks", "", {"size": 1}, "notes", ("tasks",), 1, 192)
    with pytest.raises(ConfigurationError, match=r"notes has 1 tasks: too few .* Set eval_every"):
        divide(settings, [only])


def test_with_too_few_tasks_there_are_no_evaluations_but_those_that_were_asked_for() -> None:
    settings = resolve(NOTES)
    only = Evaluation("unseen tasks", "", {"size": 1}, "notes", ("tasks",), 1, 192)
    assert settings.eval_every == 15
    without, division = divided_if_possible(settings, [only], given=["steps"])
    assert (without.eval_every, division) == (0, None)
    for asked in ("eval_every", "patience", "checkpoint"):
        with pytest.raises(ConfigurationError, match="too few"):
            divided_if_possible(settings, [only], given=[asked])


@pytest.mark.parametrize(("steps", "every"), [(0, 0), (4, 0), (10, 5), (60, 15), (1000, 250)])
def test_a_training_is_evaluated_four_times_by_default(steps: int, every: int) -> None:
    assert resolve(NOTES, steps=steps).eval_every == every
    assert resolve(NOTES, steps=max(1, steps), eval_every=3).eval_every == 3


# When ---------------------------------------------------------------------------------------------


@hypothesis.settings(max_examples=60)
@given(st.integers(1, 7), st.integers(1, 40), st.integers(1, 4), st.sets(st.integers(1, 40)))
def test_no_interval_is_passed_over_and_the_last_step_is_evaluated(
    every: int, steps: int, stride: int, killed: set[int]
) -> None:
    stage = Stage("", "", "", every, steps, None, "last")
    done: list[int] = []
    reached = [0, *range(stride, steps, stride), steps]
    for step in reached:
        for _ in range(1 + (step in killed)):  # a run that is taken up asks again
            if stage.is_due(step, done):
                done.append(step)
    assert done[0] == 0
    assert done[-1] == steps
    assert len(done) == len(set(done))
    assert all(b // every > a // every or b == steps for a, b in itertools.pairwise(done))
    assert {next(r for r in reached if r >= s) for s in range(0, steps, every)} <= set(done)


@hypothesis.settings(max_examples=60)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, None]), min_size=1, max_size=8))
def test_patience_counts_evaluations_since_the_best(heights: list[float | None]) -> None:
    history = [{"step": n, "held_out_accuracy": each} for n, each in enumerate(heights)]
    best = best_of(history)
    assert best is not None
    known = [-1.0 if each is None else each for each in heights]
    assert best["step"] == known.index(max(known))
    waited = len(history) - 1 - best["step"]
    assert [is_enough(history, n) for n in (1, 2, 3)] == [waited >= n for n in (1, 2, 3)]
    assert not is_enough(history, None)


def test_what_goes_by_evaluations_needs_them() -> None:
    assert not stages(small())
    for wrong, message in (
        ({"patience": 2}, "patience needs evaluations, and eval_every is 0"),
        ({"sft_checkpoint": "best"}, "sft_checkpoint=best .* set sft_eval_every"),
        ({"evaluation_env_kwargs": {"split": "dev"}}, "split of evaluations is set by --split"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            small(**wrong)


def test_weights_are_kept_as_long_as_a_run_may_go_back_to_where_they_were_the_best(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    heights = {0: 0, 1: 1, 2: 0, 3: 2, 4: 2}  # of three tasks
    settings = resolve(NOTES, eval_every=1, checkpoint="best", steps=9)
    run = Run.create(tmp_path / "run", {})
    source = Evaluation("unseen tasks", "", {}, "notes", ("tasks",), 6, 192)
    division = Division(source, ("a", "b", "c"), ())

    def play(model: Any, tokenizer: Any, settings: Any, asked: Asked, done: Any) -> Any:
        blank = EpisodeRecord(NOTES, "", 0, "?", (), 0.0, False, True, True, 0, {})
        right = heights[step]
        return [
            replace(blank, task_id=task, correct=place < right)
            for place, task in enumerate(asked.task_ids)
        ]

    stage = stages(settings)["grpo"]
    held_out = HeldOut(run, settings, stage, division, play, NoProgress())
    for step in heights:
        if step == 3:
            (run.checkpoints / "checkpoint-2").mkdir()
        with torch.no_grad():
            next(tiny_model.parameters()).fill_(step)
        assert not held_out.check(step, tiny_model, tokenizer)
    names = {path.name for path in run.checkpoints.iterdir()}
    assert names == {"checkpoint-2", "best-1", "best-3"}
    assert held_out.kept() == run.checkpoints / "best-3"

    held_out.begin_again_after(2)  # killed, and taken up again from checkpoint-2
    assert [each["step"] for each in held_out.history] == [0, 1, 2]
    best = held_out.kept()
    assert best == run.checkpoints / "best-1"
    read_weights(tiny_model, best)
    assert float(next(tiny_model.parameters()).detach().mean()) == 1.0
    held_out.finish()
    assert held_out.kept() == run.checkpoints / "best"
    shutil.rmtree(run.checkpoints / "best")
    with pytest.raises(ConfigurationError, match=r"the best weights of .* are not in"):
        held_out.kept()


# What is kept, and that nothing else changes ------------------------------------------------------


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("plain") / "run", small())


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("watched") / "run", small(**WATCHED))


@pytest.mark.integration
def test_training_is_the_same_to_the_bit_with_and_without(plain: Run, watched: Run) -> None:
    assert weights(watched, "warmup") == weights(plain, "warmup")
    assert weights(watched, "final") == weights(plain, "final")
    for phase in ("warmup", "grpo"):
        assert without_clock(watched.metrics(phase)) == without_clock(plain.metrics(phase))
    assert watched.summary["after"] == plain.summary["after"]
    assert "selection" not in plain.summary


@pytest.mark.nightly
def test_so_it_is_with_trl(tmp_path: Path) -> None:
    without = trained(tmp_path / "without", small(trainer="trl"))
    with_them = trained(tmp_path / "with", small(trainer="trl", **WATCHED))

    assert weights(with_them, "final") == weights(without, "final")
    assert [each["step"] for each in with_them.metrics("selection")] == [0, 2, 4]


@pytest.mark.integration
def test_figures_stand_in_metrics_summary_and_report(watched: Run) -> None:
    lines = watched.metrics("selection")
    assert [line["step"] for line in lines] == [0, 2, 4]
    assert [line["step"] for line in watched.metrics("warmup-selection")] == [4, 8]
    for line in lines:
        low, high = line["held_out_low"], line["held_out_high"]
        assert 0 <= low <= line["held_out_accuracy"] + 1e-9 <= high <= 1
    told = watched.summary["selection"]
    assert (told["name"], told["tasks"], told["shared_with_reports"]) == ("unseen databases", 3, 0)
    assert (told["grpo"]["checkpoint"], told["grpo"]["step"]) == ("last", 4)
    kept = {path.name for path in watched.checkpoints.iterdir()}
    # The beginning is kept as long as guards have seen no sound rollouts since.
    assert kept - {"checkpoint-0"} == {
        *("warmup", "warmup-best", "best", "final", "checkpoint-2", "checkpoint-4")
    }
    played = {(r["step"], r["task_id"]) for r in watched.rollouts("selection")}
    assert len(played) == 9
    reported = {r["task_id"] for phase in ("before", "after") for r in watched.rollouts(phase)}
    assert not reported & {task for _, task in played}
    page = write_report(watched).read_text(encoding="utf-8")
    for words in (
        "Held-out evaluation in the warm-up",
        "held out accuracy",
        "kept are the last",
    ):
        assert words in page


@pytest.mark.integration
def test_a_killed_run_goes_on_with_the_same_numbers(watched: Run, tmp_path: Path) -> None:
    settings = small(**WATCHED)
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        trained(tmp_path / "run", settings, Interrupt("GRPO", 3))
    run = Run.open(tmp_path / "run")

    phases.train(run, settings, trainer_named("reference"), NoProgress())

    assert without_clock(run.metrics()) == without_clock(watched.metrics())
    assert list(run.rollouts()) == list(watched.rollouts())
    assert run.summary | {"seconds": 0} == watched.summary | {"seconds": 0}
    assert weights(run, "best") == weights(watched, "best")


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
    settings = small(
        **WATCHED, trainer=trainer, patience=1, checkpoint="best", sft_patience=1, steps=6
    )
    run = trained(tmp_path / "run", settings)

    # Who imitates for eight steps is right nowhere: the first evaluation stays the best.
    stage = run.summary["selection"]["grpo"]
    assert (stage["best"]["step"], stage["last"]["step"], stage["stopped_early"]) == (0, 2, True)
    assert [line["step"] for line in run.metrics("grpo")] == [1, 2]
    assert weights(run, "final") == weights(run, "best") == weights(run, "warmup")
    assert "GRPO ended early, after step 2 of 6" in run.summary["kept"]
    assert "kept are the best weights, of step 0" in run.summary["kept"]

    run.write_summary({**run.summary, "after": None, "status": "interrupted"})
    phases.train(run, settings, trainer_named(trainer), NoProgress())
    assert [line["step"] for line in run.metrics("grpo")] == [1, 2]
    assert weights(run, "final") == weights(run, "warmup")


@pytest.mark.nightly
def test_an_adapter_is_kept_and_merged_as_it_was_at_its_best(tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="needs the extra `train`")
    settings = small(**WATCHED, trainer="trl", lora=True, checkpoint="best", steps=2)
    run = trained(tmp_path / "run", settings)

    assert (run.checkpoints / "best" / "adapter_config.json").is_file()
    assert run.summary["selection"]["grpo"]["best"]["step"] == 0
    assert weights(run, "final") == weights(run, "warmup")


@pytest.mark.integration
def test_imitation_alone_is_measured_once(tmp_path: Path) -> None:
    watched = {"sft_eval_every": 4, "selection_tasks": 3, "sft_checkpoint": "best"}
    run = trained(tmp_path / "run", small(steps=0, **watched))

    summary = run.summary
    assert (summary["status"], summary["before"]) == ("complete", None)
    assert "is 0.0% after imitation alone (greedy, 4 episodes)" in summary["gain"]
    assert summary["after"]["episodes"] == 4
    assert summary["selection"]["warmup"]["best"]["step"] == 4
    assert run.metrics("grpo") == []
    assert weights(run, "final") == weights(run, "warmup")
    assert "Imitation ended after step 8" in write_report(run).read_text(encoding="utf-8")
    assert [column.header for column in results(summary).columns][1:] == ["unseen databases\nafter"]


@pytest.mark.parametrize("wrong", [{"sft_steps": 0}, {"eval_every": 1}])
def test_no_steps_at_all_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="set steps"):
        small(steps=0, **wrong)


# How evaluations are judged -----------------------------------------------------------------------


def test_evaluations_may_be_judged_in_another_way_than_rewards() -> None:
    settings = resolve(
        "sqlgym/TextToSQL-v0",
        env_kwargs={"dataset": "bundled", "tools": ["answer"]},
        evaluation_env_kwargs={"match": "spider"},
        eval_every=1,
    )
    division = divide(settings, evaluations(settings))

    for each in (division.source, *division.reports):
        env: Any = registration.make(settings.env_id, **each.env_kwargs)
        assert (env.match, list(env.tools)) == ("spider", ["answer"])
    rewarding: Any = registration.make(settings.env_id, **settings.training_kwargs)
    assert rewarding.match == "suite"
