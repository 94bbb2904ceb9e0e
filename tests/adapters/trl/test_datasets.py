"""Prompts and demonstrations, and that nothing turns them into nulls."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.trl import check_format, sft_dataset, training_dataset
from toolgym import ConfigurationError, policies

pytestmark = pytest.mark.torch

datasets = pytest.importorskip("datasets", reason="needs the extra `train`")
NOTES = "trl-tests/Notes-v0"


def arguments(dataset: Any) -> list[dict[str, Any]]:
    return [
        call["function"]["arguments"]
        for row in dataset
        for message in row["messages"]
        for call in message.get("tool_calls") or []
    ]


def padded(rows: Any) -> Any:
    """The same conversations as a data set that Arrow was left to describe."""
    plain = [{"messages": row["messages"], "tools": json.dumps(row["tools"])} for row in rows]
    return datasets.Dataset.from_list(plain)


def test_a_prompt_names_its_task_and_leaves_the_question_to_reset() -> None:
    rows = training_dataset(NOTES)
    assert sorted(rows["task_id"]) == [*(f"note-{i}" for i in range(6)), "unfair"]
    assert [message["role"] for message in rows[0]["prompt"]] == ["system", "user"]
    assert rows[0]["prompt"][1]["content"] == ""
    assert "call answer: it ends the episode" in rows[0]["prompt"][0]["content"]


def test_the_order_of_the_prompts_is_the_seeds() -> None:
    orders = [training_dataset(NOTES, seed=seed)["task_id"][:] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert training_dataset(NOTES, n=2)["task_id"][:] == orders[0][:2]


def test_the_split_is_the_environments() -> None:
    train, dev = (
        set(training_dataset("sqlgym/Explore-v0", dataset="tiny", split=split, n=40)["task_id"])
        for split in ("train", "dev")
    )
    assert len(train) == len(dev) == 40
    assert not train & dev


def test_a_set_without_playable_tasks_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no task of notes is playable: 1 unfair"):
        training_dataset(NOTES, size=0)


@pytest.mark.parametrize("builder", [training_dataset, sft_dataset])
def test_fewer_than_one_task_is_refused(builder: Callable[..., Any]) -> None:
    with pytest.raises(ConfigurationError, match="n must be at least 1"):
        builder(NOTES, n=0)


def test_a_demonstration_is_the_experts_episode_and_a_last_word() -> None:
    messages = sft_dataset(NOTES, n=1)[0]["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["system", "user", *["assistant", "tool"] * 3, "assistant"]
    assert messages[-1] == {"role": "assistant", "content": "done"}
    assert "The number is" in messages[3]["content"]
    assert "final" not in sft_dataset(NOTES, n=1, final=None)[0]["messages"][-1]["content"]


def test_a_policy_that_says_nothing_more_ends_its_demonstration() -> None:
    early = policies.ScriptedPolicy([{"name": "count", "arguments": {"text": "a"}}])
    rows = sft_dataset(NOTES, policy=early)
    assert len(rows) == 6
    assert [len(row["messages"]) for row in rows] == [5] * 6
    assert rows[0]["messages"][-1]["content"] == "done"


def test_no_call_of_a_demonstration_gets_arguments_of_another_tool() -> None:
    keys = {frozenset(each) for each in arguments(sft_dataset(NOTES))}
    assert keys == {frozenset({"note"}), frozenset({"text"}), frozenset({"value"})}


def through_disk(dataset: Any, folder: Path) -> Any:
    dataset.save_to_disk(str(folder / "saved"))
    return datasets.load_from_disk(str(folder / "saved"))


def through_parquet(dataset: Any, folder: Path) -> Any:
    dataset.to_parquet(str(folder / "rows.parquet"))
    return datasets.Dataset.from_parquet(
        str(folder / "rows.parquet"), cache_dir=str(folder / "cache")
    )


def through_jsonl(dataset: Any, folder: Path) -> Any:
    dataset.to_json(str(folder / "rows.jsonl"))
    return datasets.Dataset.from_json(
        str(folder / "rows.jsonl"), features=dataset.features, cache_dir=str(folder / "cache")
    )


def through_map(dataset: Any, folder: Path) -> Any:
    return dataset.map(lambda row: {"messages": row["messages"][1:], "n": len(row["messages"])})


def through_concatenation(dataset: Any, folder: Path) -> Any:
    halves = dataset.select(range(3)), dataset.select(range(3, 6))
    return datasets.concatenate_datasets([halves[0].map(lambda row: row), halves[1]])


def through_filter_and_shuffle(dataset: Any, folder: Path) -> Any:
    return dataset.shuffle(seed=0).filter(lambda row: True).flatten_indices()


@pytest.mark.parametrize(
    "journey",
    [
        through_disk,
        through_parquet,
        through_jsonl,
        through_map,
        through_concatenation,
        through_filter_and_shuffle,
    ],
)
def test_no_journey_pads_a_call_with_nulls(journey: Any, tmp_path: Path, tokenizer: Any) -> None:
    before = sft_dataset(NOTES)
    after = journey(before, tmp_path)
    assert sorted(map(json.dumps, arguments(after))) == sorted(map(json.dumps, arguments(before)))
    report = check_format(after, tokenizer)
    assert (report.rows, report.calls) == (6, 18)
    assert "null" not in report.example


def test_the_check_finds_the_nulls_that_arrow_pads(tokenizer: Any) -> None:
    rows = padded(sft_dataset(NOTES))
    assert any(None in each.values() for each in arguments(rows))
    with pytest.raises(
        ConfigurationError, match=r"row 0: .*read is faulty \(.*null.*\)\. Make the"
    ):
        check_format(rows, tokenizer)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ m.role }}: {{ m.content }}", "is read back as no call"),
        ("{{ m.role }}: {{ m.tool_calls | tojson if m.tool_calls else '' }}", "drops results"),
    ],
)
def test_the_check_finds_a_template_that_drops_calls_or_results(
    template: str, words: str, tokenizer: Any
) -> None:
    tokenizer.chat_template = f"{{% for m in messages %}}{template}\n{{% endfor %}}"
    tokenizer.chat_template += "{% if add_generation_prompt %}assistant: {% endif %}"
    with pytest.raises(ConfigurationError, match=words):
        check_format(sft_dataset(NOTES), tokenizer)


def test_the_check_finds_arguments_that_are_encoded_twice(make_tokenizer: Any) -> None:
    rows = [dict(row) for row in sft_dataset(NOTES, n=1)]
    for message in rows[0]["messages"]:
        for each in message.get("tool_calls", []):
            each["function"]["arguments"] = json.dumps(each["function"]["arguments"])
    check_format(rows, make_tokenizer("qwen3"))
    with pytest.raises(ConfigurationError, match=r"row 0: read.* is read back as read"):
        check_format(rows, make_tokenizer("qwen2_5"))
    with pytest.raises(ConfigurationError, match="row 0: the chat template cannot render it"):
        check_format(rows, make_tokenizer("qwen3_5_nothink"))


@pytest.mark.parametrize(
    "template", ["qwen3", "qwen2_5", "qwen3_5_nothink", "llama3_1", "glm4moe", "gemma4", "gptoss"]
)
def test_demonstrations_are_rendered_whole_by_templates_of_every_kind(
    make_tokenizer: Any, template: str
) -> None:
    rows = sft_dataset(NOTES)
    assert check_format(rows, make_tokenizer(template)).calls == 18


def test_the_check_refuses_a_data_set_without_rows(tokenizer: Any) -> None:
    with pytest.raises(ConfigurationError, match="no rows"):
        check_format(sft_dataset(NOTES, n=1).select([]), tokenizer)


def test_demonstrations_of_the_database_environment_pass_the_check(tokenizer: Any) -> None:
    rows = sft_dataset("sqlgym/Explore-v0", dataset="tiny", n=20)
    assert len(rows) == 20
    assert check_format(rows, tokenizer).calls >= 40
