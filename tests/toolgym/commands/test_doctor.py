"""`toolgym doctor`: every way to be hidden or broken is found on a real path.

What hides a package of ours does so from the start, so that is looked at in a process of its own.
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.toolgym.commands.command_line import install, names_torch_free, python, run, run_here
from toolgym.commands import doctor


def examined(path: Path | None = None, by: Any = run_here, **more: str) -> dict[str, Any]:
    """What `toolgym doctor --json` says, in this process or `by` another way."""
    done = by("doctor", "--json", path=path, **more)
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if report["ok"] else 1)
    assert "Traceback" not in done.stderr
    return report


def complaints(report: dict[str, Any]) -> str:
    return "\n".join(problem["what"] for problem in report["problems"])


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache folder that nobody has made."""
    return tmp_path_factory.mktemp("place") / "not" / "yet"


@pytest.fixture(scope="module")
def report(cache):
    """What is said of this installation."""
    return examined(
        TOOLGYM_CACHE=str(cache),
    )


def test_nothing_is_wrong_with_this_installation(report):
    assert complaints(report) == ""
    assert report["ok"]


def test_versions_are_those_of_the_machine(report):
    assert report["base"]["gymnasium"] == version("gymnasium")
    assert report["base"]["toolgym"] == version("toolgym")
    assert {"train", "ray"} <= set(report["extras"])
    assert report["extras"]["openai"]["openai"] == version("openai")


def test_the_page_for_people_says_the_same():
    done = run_here("doctor")

    assert done.returncode == 0, done.stdout
    assert f"gymnasium {version('gymnasium')}" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("No problem found.")


@pytest.mark.integration
def test_looking_imports_no_training_library():
    code = "import sys; from toolgym.commands.doctor import examine; examine(); print(*sys.modules)"

    done = python(code)

    assert done.returncode == 0, done.stderr
    assert names_torch_free(done.stdout)


@pytest.mark.integration
def test_packages_that_hide_ours_are_named_with_their_places_and_what_they_break(tmp_path):
    names = ("adapters", "sqlgym", "aflowgym")
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("stub = True\n")

    report = examined(tmp_path, run)

    for name in names:
        assert f"{name} is found at {tmp_path / name}, which hides ours" in complaints(report)
    assert "'train'" in complaints(report)
    assert not report["ok"]


@pytest.mark.integration
def test_a_namespace_portion_beside_ours_hides_nothing(tmp_path):
    (tmp_path / "adapters").mkdir()
    (tmp_path / "adapters" / "theirs.py").write_text("theirs = True\n")

    assert "hides" not in complaints(examined(tmp_path, run))


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
    assert told.startswith(f"sqlgym at {tmp_path / 'sqlgym'} is another package of that name")
    assert "pip uninstall sqlgym" in told


def test_a_package_that_is_gone_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "aflowgym", None)  # as for an import that is blocked

    assert "aflowgym cannot be found; it belongs to toolgym." in [
        problem["what"] for problem in doctor.hidden_packages()
    ]


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
    assert "pip install 'toolgym[train]'  (missing: no-such-trainer)" in done.stdout
    assert done.stdout.endswith("No problem found. Optional extras not installed: train.\n")


def test_a_missing_base_dependency_is_a_problem_with_its_cure(tmp_path):
    fake_toolgym(tmp_path, "no-such-library>=1")

    report = examined(tmp_path)

    assert {
        "what": "no-such-library is not installed; toolgym needs it.",
        "cure": "pip install no-such-library",
    } in report["problems"]


def test_a_cache_folder_that_is_yet_to_be_made_is_no_problem(report, cache):
    assert report["cache"] == str(cache)
    assert "cache" not in complaints(report)
    assert not cache.parent.exists()


def test_a_cache_folder_in_the_place_of_a_file_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("")

    report = examined(TOOLGYM_CACHE=str(tmp_path / "file" / "cache"))

    assert f"{tmp_path / 'file'}: it is a file" in complaints(report)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_a_cache_folder_that_cannot_be_written_is_a_problem(tmp_path):
    tmp_path.chmod(0o500)

    assert "no permission to write there" in complaints(
        examined(TOOLGYM_CACHE=str(tmp_path / "cache"))
    )
