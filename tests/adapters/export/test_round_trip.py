"""What is written comes back from `datasets` as it was written, key by key; nothing is padded."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from adapters.export.demonstrations import demonstration_export
from adapters.export.folder import Format, write_export
from adapters.export.rollouts import rollout_export
from adapters.export.rows import Trainer, task_export
from adapters.export.tables import Export
from adapters.export.tasks import open_parts
from adapters.trl import check_format
from tests.adapters.conftest import NOTES
from tests.sweeps import sweep
from toolgym import ToolCall, policies, rollout
from toolgym.commands.episode_output import write_records
from toolgym.records import calls_text
from toolgym.runs.run import Run

pytestmark = pytest.mark.torch

datasets = pytest.importorskip("datasets", reason="needs the extra `train`")

FORMATS = get_args(Format)
OURS = ["aflowgym/Compose-v0", "aflowgym/Operate-v0", "sqlgym/Explore-v0", "sqlgym/TextToSQL-v0"]
ENV_IDS = sweep([*OURS, NOTES], ["sqlgym/Explore-v0", NOTES])


def loaded(folder: Path, cache: Path) -> dict[str, list[dict[str, Any]]]:
    data = datasets.load_dataset(str(folder), cache_dir=str(cache))
    return {split: list(rows) for split, rows in data.items()}


def check_round_trip(export: Export, place: Path) -> None:
    """Write an export in every format; what comes back is what was written."""
    rows = {split: list(rows) for split, rows in export.splits.items()}
    names = [each.name for each in export.columns]
    written = {
        split: [{name: json.loads(json.dumps(row[name])) for name in names} for row in each]
        for split, each in rows.items()
    }
    for format in FORMATS:
        counts = write_export(replace(export, splits=rows), place / format, format=format)

        back = loaded(place / format, place / f"cache-{format}")
        assert back == written, format
        assert counts == {split: len(each) for split, each in written.items()}
        assert {tuple(row) for each in back.values() for row in each} == {tuple(names)}


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_a_demonstration_comes_back_with_its_own_keys(env_id: str, tmp_path: Path) -> None:
    parts, _ = open_parts(env_id, [{}], n=8)
    check_round_trip(demonstration_export(env_id, parts, {}), tmp_path)


@pytest.mark.parametrize("trainer", get_args(Trainer))
def test_a_row_comes_back_as_it_was_written(trainer: Trainer, tmp_path: Path) -> None:
    parts, _ = open_parts(NOTES, [{}], n=3)
    check_round_trip(task_export(NOTES, parts, {}, trainer=trainer), tmp_path)


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_a_rollout_comes_back_with_its_reward(env_id: str, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {"kind": "evaluation", "env_id": env_id})
    for policy in ("expert", "random"):
        for record in rollout.evaluate(env_id, policy, n=3):
            run.log_rollouts([{"phase": "eval", **record.to_json()}])

    check_round_trip(rollout_export(run.path), tmp_path)


def test_a_file_of_an_evaluation_is_exported_too(tmp_path: Path) -> None:
    evaluation = rollout.evaluate(NOTES, "expert", n=3)
    write_records(evaluation, tmp_path / "three.jsonl")

    rows = list(rollout_export(tmp_path / "three.jsonl").splits["train"])

    assert [row["reward"] for row in rows] == [round(each.score, 9) for each in evaluation]
    assert {row["phase"] for row in rows} == {None}


STRANGE = {
    "nothing": [],
    "null": None,
    "numbers": [0.1 + 0.2, 0.3, 1e-300, -0.0, 2**80, 10**16 + 1],
    "text": 'half \ud800, a "quote", \\, </script>, \u2028, \x00, é, 𝄞, 2024-01-01',
    "deep": {"a": {"b": [{"c": 1}, {"d": None}, {}]}},
}


@pytest.mark.parametrize("format", FORMATS)
def test_the_strangest_arguments_come_back_to_the_last_digit(
    format: Format, tmp_path: Path
) -> None:
    actions = [
        {"name": "read", "arguments": {"note": "a"}},
        '<think>\ud800</think>{"name": "count", "arguments": {"text": "\\u0000"}}',
        [{"name": "count", "arguments": {"text": "a"}}, {"name": "answer", "arguments": {}}],
        "no call",
    ]
    record = rollout.play(NOTES, policies.ScriptedPolicy(actions), seed=0).to_json()
    record["turns"][0]["calls"][0]["arguments"] = STRANGE
    record["turns"][0]["action"] = calls_text([ToolCall("read", STRANGE)])
    run = Run.create(tmp_path / "run", {"kind": "evaluation", "env_id": NOTES})
    run.log_rollouts([{"phase": "eval", **record}] * 3)

    write_export(rollout_export(run.path), tmp_path / "out", format=format)
    rows = loaded(tmp_path / "out", tmp_path / "cache")["train"]

    call = rows[0]["messages"][2]["tool_calls"][0]["function"]
    assert json.loads(call["arguments"]) == STRANGE
    assert rows[0]["messages"][4]["content"] == record["turns"][1]["action"]


@pytest.mark.parametrize(("arguments", "kind"), [("text", str), ("object", dict)])
def test_arguments_keep_their_keys_as_texts_and_as_objects(
    arguments: Any, kind: type, tmp_path: Path, make_tokenizer: Any
) -> None:
    parts, _ = open_parts(NOTES, [{}])
    write_export(demonstration_export(NOTES, parts, {}, arguments=arguments), tmp_path / "out")
    data = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))["train"]
    calls = [
        call["function"]["arguments"]
        for row in data
        for message in row["messages"]
        for call in message.get("tool_calls", [])
    ]

    assert {type(each) for each in calls} == {kind}
    decoded = [json.loads(each) if kind is str else each for each in calls]
    assert {tuple(each) for each in decoded} == {("note",), ("text",), ("value",)}
    report = check_format(data, make_tokenizer("qwen3"))
    assert (report.rows, report.calls) == (6, len(calls))
    assert "null" not in report.example
