"""`toolgym doctor`: every way to be broken is found on a real path."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.toolgym.commands.command_line import install, python, run_here
from toolgym.commands import doctor


def examined(path: Path | None = None, **more: str) -> dict[str, Any]:
    """Return the report of `toolgym doctor --json`, which runs in this process."""
    done = run_here("doctor", "--json", path=path, **more)
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if report["ok"] else 1)
    assert "Traceback" not in done.stderr
    return report


def complaints(report: dict[str, Any]) -> str:
    return "\n".join(problem["what"] for problem in report["problems"])


def test_nothing_is_wrong_with_this_installation(tmp_path):
    pytest.importorskip("openai", reason="needs the extra openai")
    cache = tmp_path / "not" / "yet"
    report = examined(TOOLGYM_CACHE=str(cache))

    assert (complaints(report), report["ok"]) == ("", True)
    assert report["base"]["gymnasium"] == version("gymnasium")
    assert report["extras"]["openai"]["openai"] == version("openai")
    assert report["cache"] == str(cache)
    assert not cache.parent.exists()


@pytest.mark.integration
def test_another_sqlgym_written_over_ours_is_told_by_its_missing_mark(tmp_path):
    for name in doctor.SHARED_NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("stub = True\n")
    code = f"""
        from pathlib import Path
        from toolgym.commands.doctor import hidden_packages
        for problem in hidden_packages(Path({str(tmp_path)!r})):
            print(*problem.values())
    """
    told = python(code, tmp_path).stdout

    assert len(told.splitlines()) == 1
    assert told.startswith("Another package named sqlgym has overwritten that of toolgym")
    assert str(tmp_path / "sqlgym") in told
    assert "pip uninstall sqlgym" in told


def test_a_broken_plug_in_of_either_kind_is_named_with_its_package(tmp_path):
    module = "raise RuntimeError('its import fails')"
    points = {"toolgym.commands: crash": "broken:thing", "toolgym.environments: crush": "broken"}
    install(tmp_path, "broken", module, points)

    told = complaints(examined(tmp_path))

    assert "'crash' of broken 9.9 (broken:thing) cannot be loaded" in told
    assert "'crush' of broken 9.9 (broken) cannot be loaded" in told
    assert told.count("RuntimeError: its import fails") == 2


def fake_toolgym(folder: Path, *requires: str) -> Path:
    """Metadata under our name that asks for something else, with the one command that is needed."""
    point = {"toolgym.commands: doctor": "toolgym.commands.doctor:command"}
    return install(folder, "toolgym", "", point, requires)


def test_a_missing_extra_is_a_fact_with_the_line_that_installs_it(tmp_path):
    fake_toolgym(tmp_path, "no-such-trainer>=1; extra == 'train'", "rich")

    done = run_here("doctor", path=tmp_path)

    assert done.returncode == 0, done.stdout
    assert "missing no-such-trainer: pip install 'toolgym[train]'" in done.stdout
    assert done.stdout.endswith("No problem found. Optional extras not installed: train.\n")


def test_a_missing_base_dependency_is_a_problem_with_its_cure(tmp_path):
    fake_toolgym(tmp_path, "no-such-library>=1")

    report = examined(tmp_path)

    assert {
        "what": "The required package no-such-library is missing.",
        "cure": "pip install no-such-library",
    } in report["problems"]


def test_a_cache_folder_in_the_place_of_a_file_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("")

    report = examined(TOOLGYM_CACHE=str(tmp_path / "file" / "cache"))

    assert f"{tmp_path / 'file'}: it is a file" in complaints(report)
