"""The shape of the checkout: names shared with other packages, and what an import costs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
