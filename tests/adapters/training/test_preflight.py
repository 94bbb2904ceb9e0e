"""Before training: what a preflight refuses, what it lets pass, and that it leaves no trace."""

import copy
import dataclasses
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import gymnasium as gym
import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from adapters.commands.preflight import training_settings
from adapters.reference.chat import check_template
from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import CHAT_TEMPLATE, null_padded, train_tokenizer
from adapters.training.models.chat_policy import ChatModelPolicy
from adapters.training.models.demonstrations import demonstrate
from adapters.training.models.supervised import SftSettings, train_supervised
from adapters.training.models.tokenized_examples import Example, examples_of
from adapters.training.preflight import sample
from adapters.training.preflight.chat_format import check_prompt, check_round_trip, check_schemas
from adapters.training.preflight.judge import Limits, Report, judge
from adapters.training.preflight.run import NoGo, Scope, before_training, preflight
from adapters.training.preflight.sample import (
    Played,
    SamplePlayed,
    _differing,
    entropy_of,
    figures_of,
)
from adapters.training.runs.preparation import save
from adapters.training.runs.progress import NoProgress
from adapters.training.runs.settings import TrainSettings, resolve
from toolgym import ConfigurationError, Task, ToolEnv, registration
from toolgym.calls import render_call
from toolgym.cli import application
from toolgym.episode import Outcome
from toolgym.messages import episode_messages
from toolgym.policies import Situation
from toolgym.records import EpisodeRecord
from toolgym.runs.run import Run

pytestmark = pytest.mark.torch

NOTES = "trl-tests/Notes-v0"
EXPLORE = "sqlgym/Explore-v0"
QUICK = Scope(tasks=4, tries=6, transcripts=2)
LITTLE = Scope(tasks=1, tries=2, transcripts=1)


def of_notes(**changes: Any) -> TrainSettings:
    """Settings for the notes, whose environment has no splits."""
    env_kwargs = {"step_limit": 6, **changes.pop("env_kwargs", {})}
    values: dict[str, Any] = {"group_size": 4, "prompts": 2, "max_completion_length": 128}
    settings = resolve(NOTES, env_kwargs=env_kwargs, **{**values, **changes})
    return settings.model_copy(update={"split": None, "evaluation_split": None})


def transcripts_of_notes(padded: bool) -> list[Any]:
    """Every note read and answered, rightly and wrongly; with all arguments in each call."""
    env: Any = gym.make(NOTES, disable_env_checker=True).unwrapped
    found = []
    for number, is_right in itertools.product(range(6), (True, False)):
        env.reset(options={"task_id": f"note-{number}"})
        env.step({"name": "read", "arguments": {"note": f"note-{number}"}})
        env.step({"name": "answer", "arguments": {"value": 10 + number if is_right else 5}})
        messages = episode_messages(env, final="done")
        found.append(null_padded(messages, env.tool_schemas()) if padded else messages)
    return found


def taught(transcripts: list[Any], steps: int = 70) -> tuple[Any, Any]:
    """A small model that imitates the transcripts, and its tokenizer."""
    tools = registration.make(NOTES).tool_schemas()
    tokenizer = train_tokenizer(transcripts)
    model = build_model(tokenizer, size=TinySize(hidden=64, heads=2, feed_forward=128))
    examples = [e for each in transcripts for e in examples_of(each, tools, tokenizer)]
    train_supervised(model, examples, SftSettings(steps, batch=12, learning_rate=1e-2, ramp=10))
    return model, tokenizer


@pytest.fixture(scope="module")
def untaught() -> tuple[Any, Any]:
    """A model with random weights, and its tokenizer."""
    tokenizer = train_tokenizer(transcripts_of_notes(padded=False))
    model = build_model(tokenizer, size=TinySize(hidden=64, heads=2, feed_forward=128))
    return model.eval(), tokenizer


class Reader(ChatModelPolicy):
    """Whatever the model says: it reads its note, and answers rightly at every second try."""

    others: ClassVar[dict[str, Any]] = {}
    """Arguments that are added to every call."""

    def act(self, situations: Sequence[Situation]) -> list[str]:
        return [self._said(each.env, self._number(each) % 2 == 0) for each in situations]

    def _number(self, situation: Situation) -> int:
        """The number of the episode among all that were played."""
        if "number" not in situation.memory:
            self.episodes = getattr(self, "episodes", -1) + 1
        return int(situation.memory.setdefault("number", getattr(self, "episodes", 0)))

    def _said(self, env: Any, is_right: bool) -> str:
        if not env.episode.turns:
            return render_call("read", {**self.others, "note": env.task.id})
        number = 10 + int(env.task.id.removeprefix("note-"))
        return render_call("answer", {**self.others, "value": number if is_right else 5})


class NullPadder(Reader):
    """It writes every argument of every tool into each call."""

    others: ClassVar = dict.fromkeys(("note", "text", "twice", "value"))


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rollouts are those of a reader."""
    monkeypatch.setattr(sample, "ChatModelPolicy", Reader)


@pytest.fixture
def null_padder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rollouts are those of a reader that pads its calls with nulls."""
    monkeypatch.setattr(sample, "ChatModelPolicy", NullPadder)


def stops(report: Report) -> dict[str, str]:
    """The checks that say no, with reason and advice."""
    return {f.check: f"{f.reason} {f.advice}" for f in report.findings if f.level == "no-go"}


def warnings(report: Report) -> dict[str, str]:
    return {f.check: f"{f.reason} {f.advice}" for f in report.findings if f.level == "warn"}


@pytest.mark.usefixtures("null_padder")
def test_null_padded_calls_are_a_no_go_under_strict_parsing_and_the_report_says_why(
    untaught: tuple[Any, Any],
) -> None:
    settings = of_notes(env_kwargs={"parsing": "strict"})

    report = preflight(settings, *untaught, NoProgress(), scope=QUICK)

    assert report.verdict == "no-go"
    assert "unexpected_argument" in stops(report)["validity"]
    assert "null for arguments" in stops(report)["validity"]
    assert 'parsing="strict" refuses such calls' in stops(report)["validity"]
    assert report.figures["validity"] == 0.0
    assert set(report.figures["signal"].values()) == {0.0}


@pytest.mark.usefixtures("null_padder")
def test_the_same_calls_are_a_go_with_default_parsing_and_a_warning(
    untaught: tuple[Any, Any],
) -> None:
    report = preflight(of_notes(), *untaught, NoProgress(), scope=QUICK)

    assert report.verdict == "go"
    assert stops(report) == {}
    assert "dropped_null" in warnings(report)["repairs_per_call"]
    assert report.figures["validity"] == 1.0
    assert report.figures["null_arguments"] == 1.0


@pytest.mark.integration
def test_a_model_that_learnt_null_padded_calls_is_seen_through() -> None:
    """With a real model, whose own words are judged."""
    taught_model = taught(transcripts_of_notes(padded=True))
    strict, lenient = (
        preflight(
            of_notes(env_kwargs={"parsing": parsing}), *taught_model, NoProgress(), scope=QUICK
        )
        for parsing in ("strict", "lenient")
    )

    assert "null for arguments" in stops(strict)["validity"]
    assert strict.figures["validity"] < 0.1
    assert lenient.go
    assert lenient.figures["validity"] > 0.8
    assert lenient.figures["null_arguments"] > 0.8


@pytest.mark.nightly
def test_a_null_padded_tiny_model_is_a_no_go_under_strict_parsing_and_else_a_go() -> None:
    tools = registration.make(EXPLORE, dataset="tiny").tool_schemas()
    played = demonstrate(EXPLORE, 2400, dataset="tiny", split="train")
    transcripts = [null_padded(transcript, tools) for transcript in played]
    tokenizer = train_tokenizer(transcripts)
    model = build_model(tokenizer)
    examples = [e for each in transcripts for e in examples_of(each, tools, tokenizer)]
    train_supervised(model, examples, SftSettings(400, learning_rate=8e-3))
    reports = {}
    for parsing in ("strict", "lenient"):
        env_kwargs = {"dataset": "tiny", "parsing": parsing}
        settings = resolve(EXPLORE, env_kwargs=env_kwargs, max_completion_length=384)
        reports[parsing] = preflight(settings, model, tokenizer, NoProgress(), needs=check_template)

    assert reports["strict"].verdict == "no-go"
    assert "null for arguments" in stops(reports["strict"])["validity"]
    assert reports["strict"].figures["dead_groups"] == 1.0
    assert reports["lenient"].verdict == "go"
    assert reports["lenient"].figures["validity"] > 0.9
    assert reports["lenient"].figures["live_groups"][8] > 0.5


@pytest.mark.nightly
def test_a_model_from_clean_calls_needs_no_repairs_under_either_parsing() -> None:
    taught_model = taught(transcripts_of_notes(padded=False))
    for parsing in ("strict", "lenient"):
        settings = of_notes(env_kwargs={"parsing": parsing})
        report = preflight(settings, *taught_model, NoProgress(), scope=QUICK, needs=check_template)
        assert report.go
        assert report.figures["repairs_per_call"] < 0.1
        assert report.figures["seconds_per_step"] > 0


def test_a_model_that_never_learnt_to_call_is_a_no_go(untaught: tuple[Any, Any]) -> None:
    report = preflight(of_notes(), *untaught, NoProgress(), scope=LITTLE)

    assert "Warm the model up" in stops(report)["validity"]
    assert report.reasons[0].startswith("validity: ")


def test_model_and_random_state_are_as_before(untaught: tuple[Any, Any]) -> None:
    model, tokenizer = untaught
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    settings = of_notes(max_completion_length=80)
    model.train(True)
    state = torch.random.get_rng_state()
    try:
        first = preflight(settings, model, tokenizer, NoProgress(), scope=LITTLE)
        second = preflight(settings, model, tokenizer, NoProgress(), scope=LITTLE)
    finally:
        is_training = model.training
        model.train(False)

    assert is_training
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(weights[name], now) for name, now in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    timed = {"rollout_seconds", "update_seconds", "seconds_per_step"}
    assert {k: v for k, v in first.figures.items() if k not in timed} == {
        k: v for k, v in second.figures.items() if k not in timed
    }


def test_rollouts_that_run_out_of_tokens_are_a_no_go(untaught: tuple[Any, Any]) -> None:
    short = of_notes(max_completion_length=16)

    report = preflight(short, *untaught, NoProgress(), scope=QUICK)

    assert "rollouts of the expert do not fit into 16 tokens" in stops(report)["room"]
    assert "rollouts" not in report.figures


# The chat format ----------------------------------------------------------------------------------


@pytest.fixture
def notes() -> ToolEnv[Task]:
    env = registration.make(NOTES)
    env.reset(seed=0)
    return env


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
    "hides a tool": (LISTED, "", "does not show the tools read, count, answer, explode"),
    "drops calls": ("message.tool_calls or []", "[]", "drops calls or results (toolgym_name"),
    "writes null": ('"name": "', '"id": null, "name": "', "writes null where nobody did"),
    "refuses": (LISTED, "{{ raise_exception('no tools') }}", "refuses a chat with tools: no tools"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_template_is_a_no_go_that(
    what: str, untaught: tuple[Any, Any], notes: ToolEnv[Task]
) -> None:
    old, new, words = BROKEN[what]
    assert old in CHAT_TEMPLATE
    tokenizer = with_template(untaught[1], CHAT_TEMPLATE.replace(old, new))

    findings = list(check_prompt(notes, tokenizer))

    assert [finding.level for finding in findings] == ["no-go"]
    assert words in findings[0].reason
    report = preflight(of_notes(), untaught[0], tokenizer, NoProgress(), scope=LITTLE)
    assert stops(report).keys() == {"template"}


@pytest.mark.parametrize("template", ["qwen3", "llama3_2"])
def test_a_template_of_a_tool_calling_model_passes(
    make_tokenizer: Any, tiny_model: Any, notes: ToolEnv[Task], template: str
) -> None:
    tokenizer = make_tokenizer(template)
    transcripts = demonstrate(NOTES, 3, demonstrator="expert")

    assert list(check_prompt(notes, tokenizer)) == []
    assert list(check_round_trip(notes, transcripts, tiny_model, tokenizer)) == []


JSON_CALL = CHAT_TEMPLATE[CHAT_TEMPLATE.index("<tool_call>") : CHAT_TEMPLATE.index("{%- endmacro")]
PYTHON_CALL = (
    "{{ function.name }}({% for key, value in function.arguments.items() %}"
    "{{ ', ' if not loop.first }}{{ key }}={{ value | tojson }}{% endfor %})\n"
)


@pytest.mark.usefixtures("reader")
def test_a_model_that_answers_in_another_format_than_its_template_is_told_so(
    untaught: tuple[Any, Any],
) -> None:
    model, tokenizer = untaught
    python = with_template(tokenizer, CHAT_TEMPLATE.replace(JSON_CALL, PYTHON_CALL))

    alike, apart = (
        preflight(of_notes(), model, each, NoProgress(), scope=QUICK)
        for each in (tokenizer, python)
    )

    assert apart.go
    assert [each.figures["template_format"] for each in (alike, apart)] == ["hermes", "python"]
    assert (
        alike.figures["call_formats"].keys() == apart.figures["call_formats"].keys() == {"hermes"}
    )
    assert "call_format" not in warnings(alike)
    assert "the model writes them as hermes" in warnings(apart)["call_format"]


def test_a_template_whose_calls_need_repairs_does_not_come_back(
    untaught: tuple[Any, Any], notes: ToolEnv[Task]
) -> None:
    model, tokenizer = untaught
    python = with_template(tokenizer, CHAT_TEMPLATE.replace(ARGUMENTS, "function.arguments"))
    transcripts = demonstrate(NOTES, 2, demonstrator="expert")

    (finding,) = check_round_trip(notes, transcripts, model, python)

    assert (finding.check, finding.level) == ("round_trip", "no-go")
    assert "repaired_json" in finding.reason
    assert list(check_round_trip(notes, transcripts, model, tokenizer)) == []


def test_a_call_with_a_null_that_nobody_wrote_does_not_come_back(
    untaught: tuple[Any, Any], notes: ToolEnv[Task]
) -> None:
    model, tokenizer = untaught
    padded = CHAT_TEMPLATE.replace("| tojson }}", '| tojson }}, "id": null')
    transcripts = demonstrate(NOTES, 1, demonstrator="expert")

    (finding,) = check_round_trip(notes, transcripts, model, with_template(tokenizer, padded))

    assert finding.level == "no-go"
    assert "null" in finding.reason


def test_a_turn_that_is_not_rendered_after_its_prompt_is_a_warning(
    untaught: tuple[Any, Any], notes: ToolEnv[Task]
) -> None:
    model, tokenizer = untaught
    thinking = CHAT_TEMPLATE.replace(
        "{%- if add_generation_prompt -%}\n{{- '<|im_start|>assistant\\n' -}}",
        "{%- if add_generation_prompt -%}\n{{- '<|im_start|>assistant\\n<think>' -}}",
    )
    assert thinking != CHAT_TEMPLATE
    transcripts = demonstrate(NOTES, 1, demonstrator="expert")

    (finding,) = check_round_trip(notes, transcripts, model, with_template(tokenizer, thinking))

    assert finding.level == "warn"
    assert "--sft-steps 0" in finding.advice


@pytest.mark.usefixtures("reader")
def test_a_template_that_rewrites_earlier_turns_stops_a_run(
    untaught: tuple[Any, Any],
) -> None:
    model, tokenizer = untaught
    dated = "{{- messages | length -}}" + CHAT_TEMPLATE
    changed = with_template(tokenizer, dated)

    report = preflight(of_notes(), model, changed, NoProgress(), scope=QUICK, needs=check_template)

    assert "rewrites earlier messages" in stops(report)["tool_turn"]


def test_schemas_that_tell_nothing_are_a_no_go(notes: ToolEnv[Task]) -> None:
    read = notes.tools["read"]
    silent = dataclasses.replace(read, description="")
    env: Any = SimpleNamespace(tools={"read": silent, "count": notes.tools["count"]})

    (finding,) = check_schemas(env)

    assert "The tool read cannot be shown to a model: it has no description" in finding.reason
    assert list(check_schemas(notes)) == []


# Figures and verdict ------------------------------------------------------------------------------


def played(correct: bool, *, score: float, progress: int = 0, **changes: Any) -> Played:
    turn = {
        "action": "<tool_call>...</tool_call>",
        "calls": [{"name": "answer", "arguments": {}}],
        "observation": "",
        "reward": score,
        "repairs": [],
        "errors": [],
        "valid": True,
        **changes,
    }
    record = EpisodeRecord(
        env_id=NOTES,
        task_id="note-0",
        seed=0,
        question="",
        turns=(turn,),
        score=score,
        correct=correct,
        scored=math.isfinite(score),
        answered=True,
        progress_bin=progress,
        reward_parts={},
    )
    return Played(record, [], written=4, cut_off=False, unfinished=False)


def judged(
    rollouts: list[Played], tries: int = 4, group_size: int = 4, **numbers: float
) -> dict[str, str]:
    found = figures_of(SamplePlayed(tuple(rollouts), tries, (1.0,), len(rollouts)))
    settings = of_notes(group_size=group_size, trainer="reference")
    return {
        finding.check: finding.level
        for finding in judge(found, {**found.numbers, **numbers}, settings, Limits())
    }


RIGHT, WRONG = played(True, score=0.97), played(False, score=-0.02)
NEAR, FAULT = played(False, score=0.2, progress=5), played(False, score=math.nan)


@pytest.mark.parametrize(
    ("rollouts", "expected"),
    [
        ([RIGHT, WRONG, RIGHT, WRONG] * 4, {}),
        ([RIGHT] * 16, {"reward_spread": "no-go"}),
        ([WRONG, played(False, score=-0.03)] * 8, {"signal": "no-go"}),
        ([WRONG, NEAR] * 8, {"live_groups": "warn"}),
        ([RIGHT, WRONG, RIGHT, WRONG] * 3 + [RIGHT, WRONG, FAULT, FAULT], {"faults": "warn"}),
        ([RIGHT, WRONG, FAULT, WRONG] * 4, {"faults": "no-go"}),
        ([FAULT] * 16, {"faults": "no-go"}),
    ],
)
def test_a_sample_is_judged_by_whether_tries_at_one_task_differ(
    rollouts: list[Played], expected: dict[str, str]
) -> None:
    assert judged(rollouts) == expected


@pytest.mark.parametrize(
    ("rollouts", "seen", "cure"),
    [
        (
            [WRONG, NEAR, NEAR, WRONG] * 4,
            "0% of groups of 4 have right and wrong members; in 100% the outcomes differ.",
            "Most were not: a longer warm-up or easier tasks would divide more groups.",
        ),
        (
            [RIGHT] * 31 + [WRONG],
            "12% of groups of 4 have right and wrong members; in 12% the outcomes differ.",
            "Most were right: harder tasks would divide more groups.",
        ),
    ],
)
def test_a_warning_says_nothing_that_would_be_a_no_go(
    rollouts: list[Played], seen: str, cure: str
) -> None:
    found = figures_of(SamplePlayed(tuple(rollouts), 4, (1.0,), len(rollouts)))
    settings = of_notes(group_size=4, trainer="reference")
    report = Report(tuple(judge(found, found.numbers, settings, Limits())), {})

    assert report.verdict == "go"
    [finding] = report.findings
    assert finding.reason == seen
    assert finding.advice.endswith(cure)
    assert "too hard" not in finding.advice


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.1, {}), (0.3, {"validity": "warn"}), (0.6, {"validity": "no-go"})],
)
def test_the_share_of_turns_that_are_not_understood_decides(
    share: float, expected: dict[str, str]
) -> None:
    bad = round(share * 20)
    rollouts = [
        played(i % 2 == 0, score=float(i % 2 == 0), valid=i >= bad, errors=["no_call"] * (i < bad))
        for i in range(20)
    ]

    assert judged(rollouts) == expected


def test_a_sample_without_a_turn_is_a_no_go() -> None:
    assert judged([RIGHT, WRONG] * 8, validity=math.nan) == {"validity": "no-go"}


@pytest.mark.parametrize(
    ("unbound", "failed", "expected"),
    [
        (0, 6, {"tool_failures": "warn"}),
        (0, 12, {"tool_failures": "no-go"}),
        (6, 8, {"validity": "warn", "tool_failures": "no-go"}),
        (12, 8, {"validity": "no-go"}),
    ],
)
def test_more_than_half_of_failing_calls_are_a_no_go_however_many_are_bound(
    unbound: int, failed: int, expected: dict[str, str]
) -> None:
    bad = unbound + failed
    rollouts = [
        played(i % 2 == 0, score=float(i % 2 == 0), valid=i >= unbound, errors=["x"] * (i < bad))
        for i in range(20)
    ]

    assert judged(rollouts) == expected


def test_in_groups_of_one_the_tries_at_one_task_need_not_differ() -> None:
    rollouts = [RIGHT] * 4 + [WRONG] * 4

    assert judged(rollouts) == {"signal": "no-go"}
    assert judged(rollouts, group_size=1) == {}
    assert judged([RIGHT] * 8, group_size=1) == {"reward_spread": "no-go"}


@pytest.mark.parametrize(
    ("entropy", "expected"),
    [(0.05, {}), (1e-5, {"entropy": "warn"}), (math.nan, {"entropy": "no-go"})],
)
def test_entropy_is_judged_where_it_could_be_measured(
    entropy: float, expected: dict[str, str]
) -> None:
    assert judged([RIGHT, WRONG] * 8, entropy=entropy) == expected


def test_answers_that_are_wrong_although_the_result_was_found_are_a_warning() -> None:
    found = played(False, score=0.4, progress=10)

    assert judged([found, RIGHT] + [found] * 10) == {"answers": "warn", "live_groups": "warn"}


@settings(max_examples=50)
@given(
    outcomes=st.lists(st.sampled_from([None, (True, 10), (False, 0), (False, 3)]), max_size=7),
    size=st.integers(2, 4),
)
def test_the_share_of_groups_with_signal_is_the_share_of_subsets_that_differ(
    outcomes: list[tuple[bool, int] | None], size: int
) -> None:
    members = [None if outcome is None else Outcome(*outcome) for outcome in outcomes]
    scored = [member for member in members if member is not None]
    subsets = list(itertools.combinations(scored, min(size, len(scored))))
    expected = sum(len(set(subset)) > 1 for subset in subsets) / max(len(subsets), 1)

    assert _differing(members, size) == pytest.approx(expected)


def test_the_entropy_of_a_model_that_knows_nothing_is_the_logarithm_of_its_vocabulary(
    untaught: tuple[Any, Any],
) -> None:
    tokenizer = untaught[1]
    model = copy.deepcopy(untaught[0])
    with torch.no_grad():
        model.lm_head.weight.zero_()
    examples = [Example((1, 2, 3, 4), (False, True, False, True))] * 3

    assert entropy_of(model, examples, 1.0) == pytest.approx(math.log(len(tokenizer)), rel=1e-5)
    assert math.isnan(entropy_of(model, [], 1.0))
    with torch.no_grad():
        model.lm_head.weight.fill_(math.nan)
    assert math.isnan(entropy_of(model, examples, 1.0))


@pytest.mark.usefixtures("reader")
def test_an_update_that_does_not_fit_into_memory_is_a_warning(
    untaught: tuple[Any, Any],
) -> None:
    model, tokenizer = untaught

    def refuse(module: Any, *_: Any) -> None:
        if module.training:
            raise torch.OutOfMemoryError("there is no more")

    hook = model.register_forward_pre_hook(refuse)
    try:
        report = preflight(of_notes(), model, tokenizer, NoProgress(), scope=QUICK)
    finally:
        hook.remove()

    assert report.go
    assert "do not fit into memory" in warnings(report)["memory"]
    assert report.to_json()["figures"]["seconds_per_step"] is None
    assert not model.training


# In a run, and on the command line ----------------------------------------------------------------


@pytest.mark.usefixtures("null_padder")
def test_a_run_keeps_the_report_and_is_stopped_by_a_no_go(
    tmp_path: Path, untaught: tuple[Any, Any]
) -> None:
    run = Run.create(tmp_path / "run", {})
    strict = of_notes(env_kwargs={"parsing": "strict", "size": 2})
    lenient = of_notes(env_kwargs={"size": 2})

    with pytest.raises(NoGo, match=r"nothing was trained:\n- validity: "):
        before_training(run, strict, *untaught, NoProgress())
    kept = json.loads((run.path / "preflight.json").read_text())
    assert kept["verdict"] == "no-go"

    assert before_training(run, lenient, *untaught, NoProgress()) is not None
    assert json.loads((run.path / "preflight.json").read_text())["verdict"] == "go"
    assert before_training(run, lenient, *untaught, NoProgress()) is None


@pytest.fixture(scope="module")
def folder(untaught: tuple[Any, Any], tmp_path_factory: Any) -> Path:
    """The model as a checkpoint of a run that was made with strict parsing."""
    run = Run.create(
        tmp_path_factory.mktemp("runs") / "notes-001",
        {"settings": of_notes(env_kwargs={"parsing": "strict"}).model_dump()},
    )
    save(*untaught, run.checkpoints / "warmup")
    return run.checkpoints / "warmup"


def on_command_line(*arguments: object) -> Any:
    return CliRunner().invoke(application(), ["preflight", *map(str, arguments)])


SMALL = ("--tasks", 4, "--tries", 6, "--quiet")


@pytest.mark.usefixtures("null_padder")
def test_the_command_takes_settings_from_the_run_of_a_checkpoint(folder: Path) -> None:
    shown = on_command_line(NOTES, "--model", folder, *SMALL)

    assert shown.exit_code == 1
    assert shown.stdout.splitlines()[-1].startswith("NO-GO  (")
    assert "no-go: validity. 0% of the turns" in shown.stdout


def test_the_trainer_is_that_of_the_run_unless_another_is_given(
    folder: Path, tmp_path: Path
) -> None:
    of_run = of_notes(trainer="reference", group_size=16)
    run = Run.create(tmp_path / "run", {"settings": of_run.model_dump()})
    model = str(run.checkpoints / "warmup")

    assert training_settings(NOTES, model, {}, {}).trainer == "reference"
    assert training_settings(NOTES, model, {}, {}).group_size == 16
    assert training_settings(NOTES, model, {"trainer": "trl"}, {}).trainer == "trl"
    assert training_settings(NOTES, None, {}, {}).trainer == "trl"


@pytest.mark.usefixtures("null_padder")
def test_what_is_given_goes_before_the_run_and_json_is_one_object(folder: Path) -> None:
    shown = on_command_line(NOTES, "--model", folder, *SMALL, "--parsing", "lenient", "--json")

    assert shown.exit_code == 0, shown.output
    told = json.loads(shown.stdout)
    assert told["verdict"] == "go"
    assert told["figures"]["live_groups"].keys() == {"2", "4", "8", "16"}
    assert told["env_kwargs"]["parsing"] == "lenient"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sqlgym/Exlore-v0"], "Did you mean"),
        ([NOTES, "--model", "./nowhere"], "There is no model folder ./nowhere"),
        ([NOTES, "--trainer", "nobody"], "--trainer must be trl or reference"),
        ([NOTES, "--rewards", "{"], "--rewards is not JSON"),
        ([EXPLORE, "--group-size", 1], "--group-size"),
        ([EXPLORE, "--set", "nothing=1"], "has no argument 'nothing'"),
    ],
)
def test_wrong_use_is_told_in_a_sentence(arguments: list[object], words: str) -> None:
    shown = on_command_line(*arguments, "--quiet")

    assert shown.exit_code == 2
    assert words in shown.output


def test_nothing_to_look_at_is_wrong_use(untaught: tuple[Any, Any]) -> None:
    with pytest.raises(ConfigurationError, match="two tries"):
        preflight(of_notes(), *untaught, NoProgress(), scope=Scope(tries=1))
