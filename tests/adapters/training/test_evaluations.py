"""A training measures on what it does not train on, whatever the environment; or says it cannot."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from adapters.commands.train import train
from adapters.training.runs.audit import audit
from adapters.training.runs.evaluations import (
    SEEN,
    Evaluation,
    evaluations,
    played_with,
    separated,
)
from adapters.training.settings import TrainSettings, read_settings, resolve
from toolgym import Task, TaskSet, ToolEnv, registration, tool
from toolgym.runs.run import ROLLOUT_PHASES, Run

EXPLORE, SAFES, OWN_SPLITS = "sqlgym/Explore-v0", "split-tests/Safes-v0", "split-tests/Splits-v0"


class Safes(ToolEnv[Task]):
    """Open the safe: say the digit that is asked for."""

    def __init__(self, items: int = 1, size: int = 10, **options: Any) -> None:
        tasks = [Task(f"safe-{n}", f"Say {n}.", item=f"bank-{n % items}") for n in range(size)]
        super().__init__(TaskSet(tasks, name="safes"), **options)

    def begin(self, task: Task) -> str:
        return task.question

    def expert(self) -> Generator[Any, str, None]:
        yield {"name": "say", "arguments": {"digit": int(self.task.id.removeprefix("safe-"))}}

    @tool(terminal=True)
    def say(self, digit: int) -> str:
        """Say a digit.

        Args:
            digit: 0 to 9.
        """
        return self.submit(self.task.id == f"safe-{digit}")


class OwnSplits(Safes):
    """The same with splits of its own, which share some tasks."""

    def __init__(self, split: str, **options: Any) -> None:
        super().__init__(items=5, size=20, **options)
        places = {"train": range(12), "dev": range(8, 20), "inner": range(9, 11), "all": range(20)}
        self.tasks = self.tasks.filter(lambda t: int(t.id[5:]) in places[split])


for name, entry in ((SAFES, Safes), (OWN_SPLITS, OwnSplits)):
    if name not in gym.registry:
        gym.register(id=name, entry_point=entry)


def of(env_id: str, splits: bool = True, **changes: Any) -> TrainSettings:
    """The settings as `toolgym train` makes them, greedy evaluations only if not asked for more."""
    settings = resolve(env_id, **{"eval_tries": 0, **changes})
    if not splits:
        settings = settings.model_copy(update={"split": None, "eval_split": None})
    return separated(settings)


def ids(settings: TrainSettings, evaluation: Evaluation | None = None) -> set[str]:
    kwargs = evaluation.env_kwargs if evaluation else settings.training_kwargs
    return set(registration.make(settings.env_id, **kwargs).tasks.ids)


# Which evaluations there are ----------------------------------------------------------------------


def test_on_tiny_unseen_tasks_unseen_databases_and_samples_are_measured() -> None:
    settings = of(EXPLORE, env_kwargs={"dataset": "tiny"}, eval_tries=2, temperature=0.8)
    tasks, databases, sampled = evaluations(settings)

    assert settings.separation is None
    assert (tasks.name, tasks.tasks, tasks.played) == ("unseen tasks", 650, 192)
    assert (databases.name, databases.tasks, databases.played) == ("unseen databases", 860, 48)
    assert (sampled.name, sampled.temperature, sampled.tries) == ("unseen tasks, sampled", 0.8, 2)
    assert ids(settings, sampled) == ids(settings, tasks)
    trained = registration.make(EXPLORE, **settings.training_kwargs).tasks
    assert len(trained) == 3190
    asked = registration.make(EXPLORE, **databases.env_kwargs).tasks
    assert not {task.item for task in asked} & {task.item for task in trained}
    assert len(list(played_with(settings, (tasks, databases, sampled)))) == 3


@pytest.mark.parametrize(
    ("env_id", "env_kwargs", "split", "name"),
    [
        (EXPLORE, {"dataset": "bundled"}, "train", "unseen databases"),
        ("aflowgym/Compose-v0", {"kind": "qa"}, "train", "unseen families"),
        # The name of a split is relative to `train`, and another split may be trained on.
        (EXPLORE, {"dataset": "tiny"}, "dev-databases", "unseen databases"),
    ],
)
def test_if_all_of_dev_is_on_unseen_items_there_is_one_evaluation(
    env_id: str, env_kwargs: dict[str, Any], split: str, name: str
) -> None:
    settings = of(env_id, env_kwargs=env_kwargs, split=split)
    (only,) = evaluations(settings)

    assert (settings.separation, only.name, only.is_held_out) == (None, name, True)


# Taking apart -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "how", "trained", "asked"),
    [
        ("train", "evaluation without training", range(12), range(12, 20)),
        ("inner", "evaluation without training", range(9, 11), [8, *range(11, 20)]),
        ("all", "training without evaluation", range(8), range(8, 20)),
        ("dev", "divided", None, None),
    ],
)
def test_splits_that_share_tasks_are_taken_apart(
    split: str, how: str, trained: Any, asked: Any
) -> None:
    settings = of(OWN_SPLITS, split=split)
    first, *_ = evaluations(settings)

    assert settings.separation == how
    assert first.is_held_out
    assert not ids(settings) & ids(settings, first)
    if trained is not None:
        assert ids(settings) == {f"safe-{n}" for n in trained}
        assert ids(settings, first) == {f"safe-{n}" for n in asked}
    else:
        assert ids(settings) | ids(settings, first) == {f"safe-{n}" for n in range(8, 20)}


@pytest.mark.parametrize(("items", "name"), [(1, "unseen tasks"), (5, "unseen items")])
def test_an_environment_without_splits_is_divided_by_item_else_by_task(
    items: int, name: str
) -> None:
    settings = of(SAFES, splits=False, env_kwargs={"items": items})
    (only,) = evaluations(settings)

    assert (settings.separation, only.name) == ("divided", name)
    assert len(ids(settings)) == 8
    assert not ids(settings) & ids(settings, only)
    assert read_settings(json.loads(json.dumps(settings.model_dump()))) == settings


def test_one_task_cannot_be_divided_and_is_not_called_unseen() -> None:
    settings = of(SAFES, splits=False, env_kwargs={"size": 1})
    (only,) = evaluations(settings)

    assert settings.separation is None
    assert (only.name, only.is_held_out, only.unseen) == (SEEN, False, ())


# What is said -------------------------------------------------------------------------------------

SMALL = {"demonstrations": 12, "sft_steps": 2, "steps": 1, "group_size": 2, "prompts": 1}


def trained(folder: Path, env_id: str, **changes: Any) -> dict[str, Any]:
    """The summary of a training of seconds."""
    fixed = {"trainer": "reference", "preflight": False, "eval_tasks": 4, **SMALL}
    return train(env_id, out=folder, quiet=True, **fixed, **changes).summary


@pytest.mark.torch
@pytest.mark.nightly
@pytest.mark.parametrize(("items", "name"), [(1, "unseen tasks"), (5, "unseen items")])
def test_terminal_summary_and_report_of_an_own_environment_say_what_was_unseen(
    items: int, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    summary = trained(tmp_path / "run", SAFES, env_kwargs={"items": items})
    told = capsys.readouterr().err

    sampled = f"greedily; {name} also sampled, 2 attempts each."
    assert f"Evaluations: {name} (2 in safes), {sampled}" in told
    assert "Separation: divided" in told
    assert f"Accuracy on {name} " in summary["gain"]
    greedy, drawn = summary["evaluations"]
    assert (greedy["name"], greedy["held_out"], greedy["after"]) == (name, True, summary["after"])
    assert (drawn["name"], drawn["held_out"]) == (f"{name}, sampled", True)
    assert drawn["after"]["episodes"] == 4
    assert "<small>held out, greedy" in (tmp_path / "run" / "report.html").read_text("utf-8")
    played = {phase: set[str]() for phase in ROLLOUT_PHASES}
    for rollout in Run.open(tmp_path / "run").rollouts():
        played[rollout["phase"]].add(rollout["task_id"])
    settings = of(SAFES, splits=False, env_kwargs={"items": items})
    wanted = ids(settings, evaluations(settings)[0])
    for phase in ("before", "after", "before-sampled", "after-sampled"):
        assert played[phase] == wanted
    assert played["grpo"]
    assert not played["grpo"] & played["before"]


def test_an_audit_knows_the_tasks_of_the_second_evaluation(tmp_path: Path) -> None:
    from adapters.training.models.demonstrations import NoisyDemonstrator
    from toolgym import rollout

    settings = of(EXPLORE, env_kwargs={"dataset": "tiny"})
    run = Run.create(tmp_path / "run", {"settings": settings.model_dump()})
    second = evaluations(settings)[1]
    played = rollout.evaluate(EXPLORE, NoisyDemonstrator(1), n=6, **second.env_kwargs)
    run.log_rollouts({"phase": "before-items", "step": None, **r.to_json()} for r in played.records)

    found = audit(run)

    assert (found.rollouts, found.undecided, found.agreement) == (6, 0, 1.0)
