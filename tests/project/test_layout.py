"""The shape of the checkout: names shared with other packages, and what an import costs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.make_architecture import picture

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("toolgym", "sqlgym", "aflowgym", "adapters")
HEAVY = {"torch", "transformers", "trl", "datasets"}


@pytest.mark.torch
def test_the_trl_that_tests_import_is_the_library():
    trl = pytest.importorskip("trl")

    assert ROOT / "adapters" not in Path(trl.__file__).resolve().parents
    assert Path(trl.__file__).parent.parent.name == "site-packages"


def test_adapters_stays_a_namespace_that_others_can_share():
    assert (ROOT / "adapters").is_dir()
    assert not (ROOT / "adapters" / "__init__.py").exists()


def test_every_folder_of_modules_in_adapters_is_a_package():
    folders = {path.parent for path in (ROOT / "adapters").rglob("*.py")}

    assert [f for f in folders if not (f / "__init__.py").exists()] == []


def test_no_folder_of_tests_is_a_package():
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_every_folder_of_tests_is_a_room_of_the_code():
    rooms = {"browser", "examples", "growth", "oracles", "project", *PACKAGES}
    for package in PACKAGES:
        rooms |= {f"{package}/{path.name}" for path in (ROOT / package).iterdir() if path.is_dir()}
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")} - {ROOT / "tests"}

    assert {folder.relative_to(ROOT / "tests").as_posix() for folder in folders} <= rooms


def test_every_package_says_that_it_is_typed():
    packages = ("toolgym", "sqlgym", "aflowgym")

    assert [p for p in packages if not (ROOT / p / "py.typed").exists()] == []


@pytest.mark.parametrize("package", ["toolgym", "sqlgym", "aflowgym"])
def test_importing_an_environment_package_loads_no_training_library(package):
    code = f"import sys, {package}; print(*sys.modules, sep='\\n')"

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert package in done.stdout.split()
    assert HEAVY & set(done.stdout.split()) == set()


def test_every_file_that_the_map_names_is_there():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", page))
    packages = ("toolgym", "sqlgym", "aflowgym", "adapters")
    files = {path.name for package in packages for path in (ROOT / package).rglob("*.py")}
    assert len(named) > 40
    for name in named:
        assert (ROOT / name).is_file() if "/" in name else name in files, name


def test_a_circle_is_not_drawn_but_told():
    assert "a --> b" in picture({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    assert "a --> c" not in picture({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    with pytest.raises(RuntimeError, match="a circle: a -> b -> a"):
        picture({"a": {"b"}, "b": {"a"}})
