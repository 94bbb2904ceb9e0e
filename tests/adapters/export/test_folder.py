"""The folder of an export appears complete or not at all, and its card describes it."""

import resource
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from adapters.export import folder
from adapters.export.demonstrations import demonstration_export
from adapters.export.folder import write_export
from adapters.export.rows import task_export
from adapters.export.tables import MESSAGE, Column, Export
from adapters.export.tasks import facts_of, open_parts
from tests.adapters.conftest import NOTES
from toolgym import ConfigurationError, EnvironmentFault
from toolgym.family import Origin, TaskFamily
from toolgym.registration import family_of

COLUMNS = (Column("task_id", "string", "the task"), Column("prompt", [MESSAGE], "the question"))


def export(n: int = 3, **splits: Any) -> Export:
    prompt = [{"role": "user", "content": "?"}]
    rows = [{"task_id": f"t{i}", "prompt": prompt} for i in range(n)]
    return Export("Some tasks", "About them.", COLUMNS, splits or {"train": rows}, {"seed": "0"})


def files_in(place: Path) -> dict[str, bytes]:
    return {
        file.relative_to(place).as_posix(): file.read_bytes()
        for file in sorted(place.rglob("*"))
        if file.is_file()
    }


@pytest.mark.integration
def test_lines_of_json_need_no_library_of_the_extra(tmp_path: Path) -> None:
    """The whole way from an environment to the folder, in a process that cannot import them."""
    from tests.toolgym.commands.command_line import python

    done = python(f"""
        import sys
        sys.path.insert(0, {str(Path(folder.__file__).parents[2])!r})
        sys.modules.update(dict.fromkeys(("datasets", "pyarrow", "torch", "trl", "yaml")))
        from adapters.export.demonstrations import demonstration_export
        from adapters.export.folder import write_export
        from adapters.export.tasks import open_parts
        from pathlib import Path
        parts, _ = open_parts("sqlgym/Explore-v0", [{{}}], n=2)
        made = demonstration_export("sqlgym/Explore-v0", parts, {{}})
        print(write_export(made, Path({str(tmp_path / "a")!r}), format="jsonl"))
    """)

    assert done.stdout == "{'train': 2}\n", done.stderr


def test_parquet_without_its_library_is_refused_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(folder.importlib.util, "find_spec", lambda name: None)

    with pytest.raises(ConfigurationError, match=r"'toolgym\[train\]', or use --format jsonl"):
        write_export(export(), tmp_path / "a", format="parquet")


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_one_order_gives_the_same_bytes(format: Any, tmp_path: Path) -> None:
    if format == "parquet":
        pytest.importorskip("datasets", reason="needs the extra `train`")
    written = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        parts, left_out = open_parts(NOTES, [{}], seed=seed)
        facts = facts_of(NOTES, parts, seed)
        made = demonstration_export(NOTES, parts, facts, left_out, seed=seed)
        write_export(made, tmp_path / name, format=format)
        written.append(files_in(tmp_path / name))

    assert written[0] == written[1] != written[2]
    assert list(written[0]) == ["README.md", f"data/train-00000-of-00001.{format}"]


def test_a_file_or_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_export(export(), tmp_path / "a", format="jsonl")  # an empty one is taken
    (tmp_path / "file").write_text("")

    for name in ("a", "file"):
        with pytest.raises(
            ConfigurationError, match=r"is not an empty folder\. Choose another one"
        ):
            write_export(export(2), tmp_path / name, format="jsonl")


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_full_disk_is_a_fault_and_leaves_nothing(format: Any, tmp_path: Path) -> None:
    if format == "parquet":
        pytest.importorskip("datasets", reason="needs the extra `train`")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))  # bytes, of any file
    try:
        with pytest.raises(EnvironmentFault, match=r"cannot be written.*Free some disk space"):
            write_export(export(3 if format == "parquet" else 900), tmp_path / "a", format=format)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert list(tmp_path.iterdir()) == []


def test_what_goes_wrong_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield export().splits["train"][0]  # type: ignore[index]
        raise EnvironmentFault("The database is gone.")

    with pytest.raises(EnvironmentFault, match="The database is gone"):
        write_export(export(train=rows()), tmp_path / "a", format="jsonl")
    with pytest.raises(ConfigurationError, match=r"no rows for the split dev\."):
        write_export(export(dev=[]), tmp_path / "a", format="jsonl")
    assert list(tmp_path.iterdir()) == []


def test_the_card_describes_the_data_and_names_what_was_left_out(tmp_path: Path) -> None:
    parts, left_out = open_parts(NOTES, [{"size": 4}], seed=7)
    made = task_export(NOTES, parts, facts_of(NOTES, parts, 7), left_out)
    write_export(made, tmp_path / "a", format="jsonl")
    card = (tmp_path / "a" / "README.md").read_text()

    for line in (
        f"- environment: `{NOTES}`",
        "- data set: the environment's own",
        '- arguments of the environment: `{"size": 4}`',
        "- seed: 7",
        f"- toolgym: {version('toolgym')}",
        "- license: the data set names none",
        "- left out of train as unfair: 1",
        "- `task_id`: the task, for `reset`",
    ):
        assert line in card.splitlines(), line
    assert str(tmp_path) not in card


def test_an_experts_wrong_answer_is_left_out_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts, left_out = open_parts(NOTES, [{"size": 2}])
    env = parts[0].env
    monkeypatch.setattr(env, "submit", lambda right: type(env).submit(env, False))
    made = demonstration_export(NOTES, parts, {}, left_out)

    assert list(made.splits["train"]) == []
    assert [each.code for each in made.left_out] == ["unfair", "expert_failed", "expert_failed"]


def test_the_data_set_names_its_license_and_its_sources(tmp_path: Path) -> None:
    sql, flows = family_of("sqlgym/Explore-v0"), family_of("aflowgym/Compose-v0")
    assert "facts of the world in bridges, countries" in sql.origin("bundled").sources
    assert sql.origin("tiny") == Origin("Apache-2.0", "written and generated for toolgym")
    assert sql.origin("bundled").license == flows.origin("bundled").license == "Apache-2.0"

    assert sql.origin(tmp_path) == flows.origin(tmp_path) == TaskFamily().origin([]) == Origin()
    (tmp_path / "LICENSE").write_text("MIT License\n\nCopyright")
    assert sql.origin(tmp_path).license == "MIT License (LICENSE in the folder of the data set)"


def test_two_splits_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two splits would have the name train"):
        open_parts(NOTES, [{}, {}], n=1)
