"""What is written comes back from `datasets` as it was written, key by key; nothing is padded."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.export.demonstrations import demonstration_export
from adapters.export.folder import FORMATS, write_export
from adapters.export.rollouts import rollout_export
from adapters.export.rows import ROW_FORMATS, task_export
from adapters.export.tables import Column, Export
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

OURS = ["aflowgym/Compose-v0", "aflowgym/Operate-v0", "sqlgym/Explore-v0", "sqlgym/TextToSQL-v0"]
ENV_IDS = sweep([*OURS, NOTES], ["sqlgym/Explore-v0", NOTES])


def kept(export: Export) -> dict[str, list[dict[str, Any]]]:
    """The rows of an export, which are noted while they are written."""
    noted: dict[str, list[dict[str, Any]]] = {}

    def noting(split: str, rows: Any) -> Iterator[dict[str, Any]]:
        noted[split] = []
        for row in rows:
            noted[split].append(json.loads(json.dumps(row)))
            yield row

    splits = {split: noting(split, rows) for split, rows in export.splits.items()}
    object.__setattr__(export, "splits", splits)
    return noted


def loaded(folder: Path, cache: Path) -> dict[str, list[dict[str, Any]]]:
    data = datasets.load_dataset(str(folder), cache_dir=str(cache))
    return {split: list(rows) for split, rows in data.items()}


def came_back(export: Export, place: Path) -> None:
    """Write an export in every format; what comes back is what was written."""
    again = {split: list(rows) for split, rows in export.splits.items()}
    for name in FORMATS:
        object.__setattr__(export, "splits", again)
        written = kept(export)
        counts = write_export(export, place / name, format=name)
        back = loaded(place / name, place / f"cache-{name}")

        assert back == written, name
        assert counts == {split: len(rows) for split, rows in written.items()}
        assert [list(row) for rows in back.values() for row in rows] == [
            [each.name for each in export.columns] for rows in back.values() for _ in rows
        ]


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_a_demonstration_comes_back_with_its_own_keys(env_id: str, tmp_path: Path) -> None:
    parts, _ = open_parts(env_id, [{}], n=8)
    came_back(demonstration_export(env_id, parts, {}), tmp_path)


@pytest.mark.parametrize(
    ("env_id", "trainer"),
    [
        *((NOTES, trainer) for trainer in ROW_FORMATS),
        pytest.param("sqlgym/Explore-v0", "trl", marks=pytest.mark.nightly),
        pytest.param("aflowgym/Operate-v0", "verl", marks=pytest.mark.nightly),
        pytest.param("aflowgym/Compose-v0", "skyrl", marks=pytest.mark.nightly),
    ],
)
def test_a_row_comes_back_as_it_was_written(env_id: str, trainer: str, tmp_path: Path) -> None:
    parts, _ = open_parts(env_id, [{}], n=3)
    came_back(task_export(env_id, parts, {}, trainer=trainer), tmp_path)


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_a_rollout_comes_back_with_its_reward(env_id: str, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {"kind": "evaluation", "env_id": env_id})
    for policy in ("expert", "random"):
        for record in rollout.evaluate(env_id, policy, n=3):
            run.log_rollouts([{"phase": "eval", **record.to_json()}])

    came_back(rollout_export(run.path), tmp_path)


def test_a_file_of_an_evaluation_is_exported_too(tmp_path: Path) -> None:
    evaluation = rollout.evaluate(NOTES, "expert", n=3)
    write_records(evaluation, tmp_path / "three.jsonl")

    export = rollout_export(tmp_path / "three.jsonl")

    came_back(export, tmp_path)
    (rows,) = loaded(tmp_path / "jsonl", tmp_path / "cache").values()
    assert [row["reward"] for row in rows] == [round(each.score, 9) for each in evaluation]
    assert {row["phase"] for row in rows} == {None}


STRANGE = {
    "nothing": [],
    "null": None,
    "numbers": [0.1 + 0.2, 0.3, 1e-300, -0.0, 2**80, 10**16 + 1],
    "text": 'half \ud800, a "quote", \\, </script>, \u2028, \x00, é, 𝄞, 2024-01-01',
    "deep": {"a": {"b": [{"c": 1}, {"d": None}, {}]}},
}


def test_the_strangest_arguments_come_back_to_the_last_digit(tmp_path: Path) -> None:
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

    for name in FORMATS:
        write_export(rollout_export(run.path), tmp_path / name, format=name)
        rows = loaded(tmp_path / name, tmp_path / f"cache-{name}")["train"]

        call = rows[0]["messages"][2]["tool_calls"][0]["function"]
        sent = json.loads(call["arguments"])
        assert sent == STRANGE, name
        assert rows[0]["messages"][4]["content"] == record["turns"][1]["action"]


def test_rows_of_the_same_struct_are_no_matter_of_chance(tmp_path: Path) -> None:
    """A column of structs refuses a row that lacks a key: it would be padded."""
    columns = (Column("call", {"sql": "string"}, "?"),)
    rows = [{"call": {"sql": "SELECT 1"}}, {"call": {"table": "a"}}]
    with pytest.raises(KeyError, match="sql"):
        write_export(Export("t", "", columns, {"train": rows}, {}), tmp_path / "padded")
    assert list(tmp_path.iterdir()) == []


def test_objects_keep_their_keys_for_templates_that_would_encode_a_text(
    tmp_path: Path, make_tokenizer: Any
) -> None:
    for arguments, kind in (("text", str), ("object", dict)):
        parts, _ = open_parts(NOTES, [{}])
        export = demonstration_export(NOTES, parts, {}, arguments=arguments)
        write_export(export, tmp_path / arguments, format="parquet")
        data = datasets.load_dataset(str(tmp_path / arguments), cache_dir=str(tmp_path / "cache"))
        calls = [
            call["function"]["arguments"]
            for row in data["train"]
            for message in row["messages"]
            for call in message.get("tool_calls", [])
        ]

        assert len(calls) == 18
        assert {type(each) for each in calls} == {kind}
        decoded = [json.loads(each) if kind is str else each for each in calls]
        assert {frozenset(each) for each in decoded} == {
            frozenset({"note"}),
            frozenset({"text"}),
            frozenset({"value"}),
        }
        report = check_format(data["train"], make_tokenizer("qwen3"))
        assert (report.rows, report.calls) == (6, 18)
        assert "null" not in report.example
