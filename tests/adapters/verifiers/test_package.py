"""What `toolgym export verifiers` writes, wherever toolgym is installed; no verifiers is needed."""

import ast
import json
import tomllib
from pathlib import Path

import pytest

from adapters.commands.export import verifiers
from adapters.verifiers.package import Package, checked_name, write_package
from toolgym import ConfigurationError


def test_the_folder_says_which_environment_and_how_it_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "hub"
    verifiers(
        *("sqlgym/Explore-v0", out), split="train", n=5, seed=3, settings=["step_limit=9"]
    )  # fmt: skip

    name = "toolgym-explore-v0"
    told = f"{out}: {name}, sqlgym/Explore-v0 for verifiers; pip install -e {out}, vf-eval {name}"
    assert capsys.readouterr().out.strip() == told
    files = {file.relative_to(out).as_posix() for file in out.rglob("*") if file.is_file()}
    assert files == {"pyproject.toml", "README.md", "toolgym_explore_v0/__init__.py"}
    project = tomllib.loads((out / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["name"] == name
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [
        "toolgym_explore_v0"
    ]
    code = ast.parse((out / "toolgym_explore_v0" / "__init__.py").read_text("utf-8"))
    (given,) = [node.value for node in code.body if isinstance(node, ast.AnnAssign)]
    assert given is not None
    assert ast.literal_eval(given) == {"split": "train", "step_limit": 9}


def test_any_text_in_an_argument_stays_a_text() -> None:
    nasty = {"dataset": '"""\\\n{x}\'; import os #', "match": "é\U0001f3d4"}
    texts = Package("a", "sqlgym/Explore-v0", nasty).files()

    code = ast.parse(texts["a/__init__.py"])
    (given,) = [node.value for node in code.body if isinstance(node, ast.AnnAssign)]
    assert given is not None
    assert ast.literal_eval(given) == nasty
    assert json.dumps(nasty, ensure_ascii=False) in texts["README.md"]
    assert tomllib.loads(texts["pyproject.toml"])["project"]["name"] == "a"


@pytest.mark.parametrize("name", ["", "Big", "a b", "../x", "1a", "class", "a/b", "a\n"])
def test_a_name_that_no_module_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is no name for a package"):
        checked_name(name)


def test_nothing_that_is_there_is_written_over(tmp_path: Path) -> None:
    package = Package("a", "sqlgym/Explore-v0", {})
    (tmp_path / "mine.txt").write_text("mine")

    with pytest.raises(ConfigurationError, match="is not an empty folder"):
        write_package(package, tmp_path)

    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    write_package(Package("a", "sqlgym/Explore-v0", {}), tmp_path / "empty")
    (tmp_path / "other").mkdir()
    write_package(Package("a", "sqlgym/Explore-v0", {}), tmp_path / "other")

    assert (tmp_path / "empty" / "README.md").read_text() == (
        tmp_path / "other" / "README.md"
    ).read_text()
