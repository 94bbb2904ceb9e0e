"""Preflight: what it refuses and lets pass, what it advises, and that it leaves no trace."""

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from typer.testing import CliRunner

from adapters.commands.preflight import training_settings
from adapters.reference import preflight as module
from adapters.reference.play import Player
from adapters.reference.preflight import (
    NoGo,
    Report,
    before_training,
    expert_findings,
    preflight,
    template_findings,
)
from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import CHAT_TEMPLATE, null_padded, train_tokenizer
from adapters.training.models.supervised import SftSettings, train_supervised
from adapters.training.models.tokenized_examples import examples_of
from adapters.training.runs.preparation import save
from adapters.training.runs.progress import NoProgress
from adapters.training.settings import TrainSettings, resolve
from toolgym import ConfigurationError, EnvironmentFault, Task, ToolEnv, registration
from toolgym.calls import render_call
from toolgym.cli import application
from toolgym.generation import Generation
from toolgym.messages import episode_messages
from toolgym.records import EpisodeRecord
from toolgym.runs.run import Run

pytestmark = pytest.mark.torch

NOTES = "trl-tests/Notes-v0"
Pair = tuple[Any, Any]
Script = Callable[[str, int], list[str]]
"""Function from the id of a task and the number of a try to the turns of a model; the number is -1
for tasks that are held out."""


def settings_for(**changes: Any) -> TrainSettings:
    """Settings for the notes, whose environment has no splits."""
    env_kwargs = {"step_limit": 6, **changes.pop("env_kwargs", {})}
    values: dict[str, Any] = {"group_size": 4, "prompts": 2, "max_completion_length": 128}
    settings = resolve(NOTES, env_kwargs=env_kwargs, **{**values, **changes})
    return settings.model_copy(update={"split": None, "eval_split": None})


def transcripts(padded: bool = False) -> list[Any]:
    """Every note read and answered, rightly and wrongly; `padded`: with nulls in each call."""
    env: Any = registration.make(NOTES)
    found = []
    for number, is_right in itertools.product(range(6), (True, False)):
        env.reset(options={"task_id": f"note-{number}"})
        env.step({"name": "read", "arguments": {"note": f"note-{number}"}})
        env.step({"name": "answer", "arguments": {"value": 10 + number if is_right else 5}})
        messages = episode_messages(env, final="done")
        found.append(null_padded(messages, env.tool_schemas()) if padded else messages)
    return found


def small_model(chats: list[Any]) -> Pair:
    tokenizer = train_tokenizer(chats)
    return build_model(tokenizer, size=TinySize(hidden=64, heads=2, feed_forward=128)), tokenizer


@pytest.fixture(scope="module")
def pair() -> Pair:
    """A model with random weights, and its tokenizer."""
    return small_model(transcripts())


@pytest.fixture
def notes() -> ToolEnv[Task]:
    env = registration.make(NOTES)
    env.reset(seed=0)
    return env


def turns(task: str, value: int, others: dict[str, Any]) -> list[str]:
    """Read the note of a task and answer; `others` are arguments in every call."""
    return [
        render_call("read", {**others, "note": task}),
        render_call("answer", {**others, "value": value}),
    ]


def right(task: str, **others: Any) -> list[str]:
    return turns(task, 10 + int(task.removeprefix("note-")), others)


def wrong(task: str, **others: Any) -> list[str]:
    return turns(task, 5, others)


def guess(task: str) -> list[str]:
    """Answer without having read: wrong, and with less progress than `wrong`."""
    return wrong(task)[1:]


@pytest.fixture
def played(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Report]:
    """Function that plays a script instead of the model, and returns the report."""

    def run(script: Script, tasks: int = 6, tries: int = 12, **changes: Any) -> Report:
        class Scripted(Player):
            def play(self, rollouts: Any, **_: Any) -> None:
                for rollout in rollouts:
                    self.env.reset(options={"task_id": rollout.task_id})
                    number = int(rollout.stream.rpartition("-")[2])
                    if rollout.stream.startswith("held-out"):
                        number = -1
                    with suppress(EnvironmentFault):
                        for text in script(rollout.task_id, number):
                            self.env.step(text)
                    if not self.env.episode.over:
                        rollout.unfinished = True
                        self.env.finish()
                    ids, entropy = [5, 6, 7], 0.1
                    rollout.tokens = Generation(
                        [3, 4], "", 8, ids, [1] * 3, [-entropy] * 3, [(0, 3)]
                    )
                    rollout.episode = EpisodeRecord.of(self.env.episode, NOTES)
                    rollout.reward = rollout.episode.score

        monkeypatch.setattr(module, "Player", Scripted)
        settings = settings_for(**changes)
        return preflight(settings, *pair, NoProgress(), tasks=tasks, tries=tries)

    return run


def levels(report: Report) -> dict[str, str]:
    return {finding.check: finding.level for finding in report.findings}


def words(report: Report, check: str) -> str:
    """Reason and advice of a finding."""
    (found,) = [each for each in report.findings if each.check == check]
    return f"{found.reason} {found.advice}"


# The collapse that a preflight is for: every call padded with nulls, and a parser that refuses it.


def test_calls_padded_with_nulls_are_a_no_go_if_the_parser_refuses_them(
    played: Callable[..., Report],
) -> None:
    others = dict.fromkeys(("note", "text", "twice", "value"))

    def padded(task: str, number: int) -> list[str]:
        return right(task, **others) if number % 2 else wrong(task, **others)

    strict = played(padded, env_kwargs={"parsing": "strict"})
    lenient = played(padded)

    assert strict.verdict == "no-go"
    assert "unexpected_argument" in words(strict, "validity")
    assert "100% of the calls pass null for arguments" in words(strict, "validity")
    assert 'Use parsing="lenient"' in words(strict, "validity")
    assert lenient.verdict == "go"
    assert levels(lenient) == {"repairs_per_call": "warn"}
    assert "dropped_null" in words(lenient, "repairs_per_call")
    assert lenient.figures["null_arguments"] == lenient.figures["validity"] == 1.0


@pytest.mark.integration
def test_a_model_that_learned_padded_calls_is_refused_only_with_strict_parsing() -> None:
    model, tokenizer = small_model(chats := transcripts(padded=True))
    tools = registration.make(NOTES).tool_schemas()
    examples = [each for chat in chats for each in examples_of(chat, tools, tokenizer)]
    train_supervised(model, examples, SftSettings(70, batch=12, learning_rate=1e-2, ramp=10))

    strict, lenient = (
        preflight(settings_for(env_kwargs={"parsing": parsing}), model, tokenizer, NoProgress())
        for parsing in ("strict", "lenient")
    )

    assert "null for arguments" in words(strict, "validity")
    assert strict.figures["validity"] < 0.1
    assert lenient.go
    assert lenient.figures["validity"] > 0.8


# The rules of the verdict.

RARE = {"live_groups": "no-go"}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (lambda task, n: right(task) if n % 2 else wrong(task), {}),
        (lambda task, n: right(task), {"live_groups": "no-go"}),
        (lambda task, n: wrong(task), {"accuracy": "no-go"}),
        (lambda task, n: wrong(task) if n % 2 else guess(task), {"accuracy": "no-go"}),
        (lambda task, n: right(task) if (task, n) != ("note-0", 0) else wrong(task), RARE),
        (lambda task, n: wrong(task) if (task, n) != ("note-0", 0) else right(task), RARE),
        (lambda task, n: right(task) if not n else guess(task), {"live_groups": "warn"}),
    ],
)
def test_rollouts_decide_whether_there_is_something_to_learn_from(
    script: Script, expected: dict[str, str], played: Callable[..., Report]
) -> None:
    assert levels(played(script)) == expected


def test_a_model_that_is_never_right_is_refused_with_the_bound_on_its_success(
    played: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(task: str, number: int) -> list[str]:
        return wrong(task) if number % 3 else guess(task)

    report, few = played(never), played(never, tasks=2, tries=4)

    assert "None of 72 rollouts is correct (at most 5.1% are" in words(report, "accuracy")
    assert "--model" in words(report, "accuracy")
    assert "docs/own-database.md" in words(report, "accuracy")
    assert levels(few) == {"accuracy": "warn"}
    assert "Play more rollouts" in words(few, "accuracy")
    monkeypatch.setattr(module, "_SMALL", 0)  # as for a pretrained model
    assert "start with easier tasks" in words(played(never), "accuracy")
    assert "docs/own-database.md" not in words(played(never), "accuracy")


def test_a_model_that_knows_its_training_tasks_by_heart_is_refused(
    played: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = {"eval_env_kwargs": {"step_limit": 5}}

    def by_heart(task: str, number: int) -> list[str]:
        return right(task) if number % 2 and number > 0 else wrong(task)

    def partly(task: str, number: int) -> list[str]:
        is_known = number % 2 if number >= 0 else task == "note-0"
        return right(task) if is_known else wrong(task)

    def now_and_then(task: str, number: int) -> list[str]:
        return right(task) if number == 1 and task in ("note-0", "note-1") else wrong(task)

    none, few = played(by_heart, **apart), played(partly, **apart)

    assert levels(none) == levels(few) == {"held_out": "no-go"}
    assert "0.0% of the rollouts of held-out tasks are correct" in words(none, "held_out")
    assert levels(played(by_heart)) == {}  # nothing is held out
    assert levels(played(now_and_then, **apart))["held_out"] == "warn"  # none of 64 by chance
    monkeypatch.setattr(module, "_SMALL", 0)  # as for a pretrained model, which knows more
    assert levels(played(partly, **apart)) == {"held_out": "warn"}


@pytest.mark.parametrize(
    ("unfinished", "rare", "expected"),
    [
        (0.05, False, {}),
        (0.3, False, {"unfinished": "warn"}),
        (0.6, False, {"unfinished": "no-go"}),
        (0.3, True, {"unfinished": "warn", "live_groups": "no-go"}),
    ],
)
def test_rollouts_that_run_out_of_tokens_are_worse_if_few_are_right(
    unfinished: float, rare: bool, expected: dict[str, str], played: Callable[..., Report]
) -> None:
    def script(task: str, number: int) -> list[str]:
        if number % 20 < 20 * unfinished:
            return right(task)[:1]
        is_right = (task, number) == ("note-0", 19) if rare else number % 2
        return right(task) if is_right else wrong(task)

    report = played(script, tasks=6, tries=20)

    found = {k: v for k, v in levels(report).items() if k in ("unfinished", "live_groups")}
    assert found == expected


def test_a_model_that_never_learned_to_call_is_refused(pair: Pair) -> None:
    report = preflight(settings_for(), *pair, NoProgress(), tasks=1, tries=2)

    assert "Only 0% of the turns have valid calls" in words(report, "validity")
    assert "--sft-steps" in words(report, "validity")
    with pytest.raises(ConfigurationError, match="tries must be at least 2"):
        preflight(settings_for(), *pair, NoProgress(), tries=1)


def test_failures_of_the_environment_stop_as_they_stop_a_run(
    played: Callable[..., Report],
) -> None:
    broken = played(lambda task, n: [render_call("explode", {})])
    often = played(lambda task, n: [[render_call("explode", {})], wrong(task), right(task)][n % 3])
    once = played(
        lambda task, n: [render_call("explode", {})] if not n else [wrong, right][n % 2](task)
    )

    assert levels(broken) == levels(often) == {"faults": "no-go"}
    assert "failed in 72 of 72 rollouts" in words(broken, "faults")
    assert levels(once) == {"faults": "warn"}


# The model: it is left as it was, and the update is tried with its memory.


@pytest.mark.integration
def test_model_and_random_state_are_left_as_they_were(pair: Pair) -> None:
    model, tokenizer = pair
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state, names = torch.random.get_rng_state(), [name for name, _ in model.named_modules()]
    reports = []
    for lora in (False, True, False):
        options = {"gradient_checkpointing": True} if lora else {}
        own = {"trainer": "reference", **options, "max_completion_length": 80}
        settings = settings_for(lora=lora, **own)
        reports.append(preflight(settings, model.train(), tokenizer, NoProgress(), tasks=1))

    assert model.training
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(weights[name], now) for name, now in model.state_dict().items())
    assert all(each.grad is None and each.requires_grad for each in model.parameters())
    assert names == [name for name, _ in model.named_modules()]
    assert reports[0].figures["update_seconds"] > 0
    assert reports[0].figures["accuracy"] == reports[2].figures["accuracy"]
    assert reports[0].figures["entropy"] == reports[2].figures["entropy"]


def test_an_update_that_does_not_fit_into_memory_is_a_no_go(
    pair: Pair, played: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("there is no more")

    monkeypatch.setattr(module, "token_log_probs", refuse)
    report = played(lambda task, n: right(task) if n % 2 else wrong(task))

    assert levels(report) == {"memory": "no-go"}
    assert "--lora" in words(report, "memory")
    assert report.to_json()["figures"]["seconds_per_step"] is None


def test_bfloat16_without_instructions_for_it_is_a_warning(
    played: Callable[..., Report], pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "multiplies_bfloat16", lambda: False)
    monkeypatch.setattr(module, "_update_seconds", lambda *_: 1.0)
    pair[0].to(torch.bfloat16)
    try:
        report = played(lambda task, n: right(task) if n % 2 else wrong(task))
    finally:
        pair[0].to(torch.float32)

    assert levels(report) == {"dtype": "warn"}
    assert "--dtype auto" in words(report, "dtype")


# The chat format.


def with_template(tokenizer: Any, template: str) -> Any:
    changed = type(tokenizer)(
        tokenizer_object=tokenizer.backend_tokenizer,
        eos_token=tokenizer.eos_token,
        pad_token=tokenizer.pad_token,
    )
    changed.chat_template = template
    return changed


LISTED = "{{- ' ' + (tool.function if tool.function is defined else tool).name -}}"
ARGUMENTS = "function.arguments if function.arguments is string else function.arguments | tojson"
BROKEN = {
    "hides a tool": (LISTED, "", "template", "does not show the tools read, count, answer"),
    "writes null": (LISTED, LISTED + "{{- ' null' -}}", "template", "adds null to the tools"),
    "refuses": (LISTED, "{{ raise_exception('no tools') }}", "tool_turn", "no tools"),
    "rewrites": ("", "{{- messages | length -}}", "tool_turn", "changes earlier messages"),
    "garbles calls": (ARGUMENTS, "function.arguments", "round_trip", "repaired_json"),
    "pads calls": ("| tojson }}", '| tojson }}, "id": null', "round_trip", "null that the expert"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_chat_template_is_refused_that(what: str, pair: Pair) -> None:
    old, new, check, reason = BROKEN[what]
    assert old in CHAT_TEMPLATE
    tokenizer = with_template(pair[1], CHAT_TEMPLATE.replace(old, new, 1 if not old else -1))

    report = preflight(settings_for(), pair[0], tokenizer, NoProgress(), tasks=1, tries=2)

    assert not report.go
    assert reason in words(report, check)
    assert report.figures == {}


@pytest.mark.parametrize("template", ["qwen3", "llama3_2"])
def test_templates_of_tool_calling_models_pass(
    make_tokenizer: Any, tiny_model: Any, notes: ToolEnv[Task], template: str
) -> None:
    tokenizer = make_tokenizer(template)

    assert list(template_findings(notes, tokenizer)) == []
    long = settings_for(max_completion_length=10_000)
    assert list(expert_findings(long, notes, tiny_model, tokenizer, 10_000)) == []


def test_a_template_that_cannot_be_imitated_is_a_warning(pair: Pair, notes: ToolEnv[Task]) -> None:
    opening = "{{- '<|im_start|>assistant\\n' -}}"
    position = CHAT_TEMPLATE.rindex(opening)
    thinking = CHAT_TEMPLATE[:position] + CHAT_TEMPLATE[position:].replace("\\n'", "\\n<think>'", 1)
    tokenizer = with_template(pair[1], thinking)

    (finding,) = expert_findings(settings_for(), notes, pair[0], tokenizer, 10_000)

    assert finding.level == "warn"
    assert "--sft-steps 0" in finding.advice


def test_rollouts_of_the_expert_must_fit(pair: Pair, notes: ToolEnv[Task]) -> None:
    short = preflight(settings_for(max_completion_length=16), *pair, NoProgress())
    (narrow,) = expert_findings(settings_for(), notes, *pair, 16)

    assert levels(short) == {"room": "no-go"}
    assert "rollouts of the expert do not fit into 16 tokens" in words(short, "room")
    assert "Raise --max-completion-length" in words(short, "room")
    assert "longer" in narrow.advice


# In a run, and on the command line.


def test_a_run_keeps_the_report_and_checks_again_after_a_no_go_only(
    tmp_path: Path, pair: Pair, played: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.create(tmp_path / "run", {})
    good = played(lambda task, n: right(task) if n % 2 else wrong(task))

    with pytest.raises(NoGo, match=r"the training did not start:\n- room: "):
        before_training(run, settings_for(max_completion_length=16), *pair, NoProgress())
    assert json.loads((run.path / "preflight.json").read_text())["verdict"] == "no-go"
    monkeypatch.setattr(module, "preflight", lambda *_: good)
    assert before_training(run, settings_for(), *pair, NoProgress()) is good
    assert json.loads((run.path / "preflight.json").read_text())["verdict"] == "go"
    assert before_training(run, settings_for(), *pair, NoProgress()) is None


@pytest.fixture(scope="module")
def checkpoint(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as a checkpoint of a run with strict parsing, groups of 16 and little room."""
    settings = settings_for(
        env_kwargs={"parsing": "strict"},
        group_size=16,
        max_completion_length=16,
        trainer="reference",
    )
    folder = tmp_path_factory.mktemp("runs") / "notes-001"
    run = Run.create(folder, {"settings": settings.model_dump()})
    save(*pair, run.checkpoints / "sft")
    return run.checkpoints / "sft"


def on_command_line(*arguments: object) -> Any:
    return CliRunner().invoke(application(), ["preflight", *map(str, arguments)])


def test_a_checkpoint_brings_the_settings_of_its_run(checkpoint: Path) -> None:
    model = str(checkpoint)
    of_run = training_settings(NOTES, {"model": model})
    own = {"group_size": 4, "env_kwargs": {"parsing": "lenient"}}
    other = training_settings(NOTES, {"model": model, **own})

    assert (of_run.group_size, of_run.trainer, of_run.sft_steps) == (16, "reference", 0)
    assert of_run.env_kwargs["parsing"] == "strict"
    assert (other.group_size, other.env_kwargs["parsing"]) == (4, "lenient")
    assert training_settings(NOTES, {}).trainer == "trl"
    shown = on_command_line(NOTES, "--model", checkpoint, "--quiet")
    assert shown.stdout, shown.stderr
    assert "no-go: room. 8 of 8 rollouts of the expert do not fit into 16 tokens" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "NO-GO"


def test_json_is_one_object_with_all_figures(checkpoint: Path) -> None:
    small = ("--max-completion-length", 100, "--tasks", 1, "--tries", 2, "--quiet", "--json")
    shown = on_command_line(NOTES, "--model", checkpoint, *small)

    assert shown.exit_code == 1, shown.output
    report = json.loads(shown.stdout)
    assert report["verdict"] == "no-go"
    assert report["env_kwargs"]["parsing"] == "strict"
    assert {"accuracy", "live_groups", "entropy", "seconds_per_step"} <= report["figures"].keys()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sqlgym/Exlore-v0"], "Did you mean"),
        ([NOTES, "--model", "./nowhere"], "There is no model folder ./nowhere"),
        ([NOTES, "--trainer", "nobody"], "--trainer must be"),
        (["sqlgym/Explore-v0", "--group-size", 1], "group_size=1"),
        (["sqlgym/Explore-v0", "--set", "nothing=1"], "has no argument 'nothing'"),
    ],
)
def test_wrong_use_is_explained_in_a_sentence(arguments: list[object], words: str) -> None:
    shown = on_command_line(*arguments, "--quiet")

    assert shown.exit_code == 2
    assert words in shown.output
