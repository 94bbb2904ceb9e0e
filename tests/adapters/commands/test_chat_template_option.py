"""`--chat-template`: a base model is trained, looked at and evaluated by a template of our own."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.training.models.chat_policy import load_model
from adapters.training.models.chat_templates import ChatTemplate
from adapters.training.runs.preparation import TEMPLATE, load_prepared, prepare
from adapters.training.runs.progress import NoProgress
from adapters.training.settings import TrainSettings, read_settings, resolve
from tests.adapters.base_models import save_base_model
from tests.toolgym.commands.command_line import run_here
from toolgym.runs.run import Run

pytestmark = pytest.mark.torch
ENV = "sqlgym/Explore-v0"
SMALL = [
    "--dataset",
    "tiny",
    "--demonstrations",
    "4",
    "--sft-steps",
    "2",
    "--steps",
    "2",
    "--quiet",
]
SMALL += ["--group-size", "2", "--prompts", "2", "--eval-tasks", "2", "--eval-tries", "0"]
SMALL += ["--max-completion-length", "32", "--step-limit", "2", "--max-new-tokens", "8"]
TRAINERS = [
    pytest.param("trl", marks=pytest.mark.nightly),
    pytest.param("reference", marks=pytest.mark.integration),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a base model."""
    return save_base_model(tmp_path_factory.mktemp("base"), ENV, dataset="tiny")


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_base_model_is_trained_and_its_checkpoint_needs_no_option(
    trainer: str, base: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    options = ["--chat-template", "hermes", "--trainer", trainer, "--no-preflight", "--out", folder]

    done = run_here("train", ENV, "--model", base, *SMALL, *options)

    assert done.returncode == 0, done.stderr
    run = Run.open(folder)
    assert run.summary["status"] == "complete"
    assert len(run.metrics("grpo")) == 2
    assert run.config["settings"]["chat_template"] == "hermes"
    assert (folder / TEMPLATE).read_text() == ChatTemplate.named("hermes").text
    final = folder / "checkpoints" / "final"
    _, tokenizer = load_model(str(final))
    assert tokenizer.chat_template == ChatTemplate.named("hermes").text
    cheap = ["--dataset", "tiny", "--n", "2", "--step-limit", "2", "--json"]
    cheap += ["--policy-set", "max_new_tokens=8"]
    evaluated = run_here("eval", ENV, "--policy", final, *cheap)
    assert evaluated.returncode == 0, evaluated.stderr
    assert json.loads(evaluated.stdout)["episodes"] == 2


def test_without_the_option_a_base_model_is_refused_with_its_name(
    base: Path, tmp_path: Path
) -> None:
    cheap = ["--dataset", "tiny", "--n", "2", "--policy-set", "max_new_tokens=8"]
    lines: list[list[Any]] = [
        ["train", ENV, "--model", base, *SMALL, "--out", tmp_path / "run"],
        ["preflight", ENV, "--model", base, "--dataset", "tiny"],
        ["eval", ENV, "--policy", base, *cheap],
    ]
    for line in lines:
        done = run_here(*line)
        assert done.returncode == 2
        assert "has no chat template" in done.stderr
        assert "Add --chat-template hermes" in " ".join(done.stderr.split())


def test_eval_takes_the_option_in_two_ways_and_says_that_it_was_given(base: Path) -> None:
    cheap = ["--dataset", "tiny", "--n", "2", "--step-limit", "2", "--json"]
    cheap += ["--policy-set", "max_new_tokens=8"]
    ways = (["--chat-template", "hermes"], ["--policy-set", "chat_template=hermes"])
    figures = []
    for way in ways:
        done = run_here("eval", ENV, "--policy", base, *cheap, *way)
        assert done.returncode == 0, done.stderr
        figures.append(json.loads(done.stdout))

    assert figures[0] == figures[1]
    assert figures[0]["chat_template"] == "hermes"
    both = run_here("eval", ENV, "--policy", base, *cheap, *ways[0], *ways[1])
    assert both.returncode == 2
    assert "chat_template is given twice" in both.stderr


@pytest.mark.integration
def test_preflight_checks_a_base_model_with_the_template(base: Path) -> None:
    look = ["--dataset", "tiny", "--step-limit", "2", "--max-completion-length", "300"]
    look += ["--tasks", "2", "--tries", "2", "--json", "--quiet"]

    done = run_here("preflight", ENV, "--model", base, "--chat-template", "hermes", *look)

    assert done.returncode == 1, done.stderr  # its weights are random
    told = json.loads(done.stdout)
    assert told["chat_template"] == "hermes"
    assert "validity" in {finding["check"] for finding in told["findings"]}
    assert not {"template", "tool_turn", "round_trip"} & {f["check"] for f in told["findings"]}


def settings_for(base: Path, template: str, **changes: Any) -> TrainSettings:
    small = {"demonstrations": 2, "sft_steps": 0, "steps": 1, "group_size": 2, "prompts": 1}
    env_kwargs = {"dataset": "tiny", "step_limit": 2}
    return resolve(
        ENV, model=str(base), chat_template=template, env_kwargs=env_kwargs, **(small | changes)
    )


@pytest.mark.parametrize("sft_steps", [0, 1])
def test_a_run_goes_on_with_the_template_that_it_began_with(
    sft_steps: int, base: Path, tmp_path: Path
) -> None:
    file = tmp_path / "own.jinja"
    written = ChatTemplate.named("hermes").text.replace("You can call tools.", "Call tools.")
    file.write_text(written)
    settings = settings_for(base, str(file), sft_steps=sft_steps)
    run = Run.create(tmp_path / "run", {"settings": settings.model_dump()})
    _, first = prepare(settings, run, NoProgress())
    file.write_text("{{ messages[0].content }}")

    for again in (prepare(settings, run, NoProgress()), load_prepared(settings, run)):
        assert again[1].chat_template == first.chat_template == written
    file.unlink()
    assert load_prepared(read_settings(run.config["settings"]), run)[1].chat_template == written
