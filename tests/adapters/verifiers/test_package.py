"""The package that `toolgym export verifiers` writes; verifiers is not needed to write it."""

import ast
import tomllib
from pathlib import Path
from typing import Any

import pytest

from adapters.commands.export import verifiers
from adapters.export.verifiers_package import write_package
from toolgym import ConfigurationError, registration

EXPLORE = "sqlgym/Explore-v0"


def arguments_in(folder: Path) -> Any:
    """The arguments of the environment that the module of a package holds."""
    (file,) = folder.glob("*/__init__.py")
    code = ast.parse(file.read_text("utf-8"))
    (given,) = [node.value for node in code.body if isinstance(node, ast.AnnAssign)]
    assert given is not None
    return ast.literal_eval(given)


def test_the_package_holds_the_environment_and_its_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, name = tmp_path / "hub", "toolgym-explore-v0"
    verifiers(EXPLORE, out, split="train", n=5, seed=3, settings=["step_limit=9"])

    printed = f"{out}: {EXPLORE} for verifiers. Next: pip install -e {out} && vf-eval {name}"
    assert capsys.readouterr().out.strip() == printed
    files = {file.relative_to(out).as_posix() for file in out.rglob("*") if file.is_file()}
    assert files == {"pyproject.toml", "README.md", "toolgym_explore_v0/__init__.py"}
    project = tomllib.loads((out / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["name"] == name
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["toolgym_explore_v0"]
    assert arguments_in(out) == {"split": "train", "step_limit": 9}


def test_any_text_in_an_argument_stays_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nasty = {"dataset": '"""\\\n{x}\'; import os #', "match": "é\U0001f3d4"}
    env = registration.make(EXPLORE)
    monkeypatch.setattr(registration, "make", lambda env_id, **env_kwargs: env)

    write_package(tmp_path / "a", EXPLORE, nasty, name="a")

    assert arguments_in(tmp_path / "a") == nasty


@pytest.mark.parametrize("name", ["", "Big", "a b", "../x", "1a", "class", "a/b", "a\n"])
def test_a_name_that_no_module_can_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a package name"):
        write_package(tmp_path / "a", EXPLORE, {}, name=name)


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")

    with pytest.raises(ConfigurationError, match="is not an empty folder"):
        write_package(tmp_path, EXPLORE, {})

    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]
