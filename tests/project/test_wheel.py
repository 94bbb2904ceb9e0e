"""The built wheel, installed into an empty environment, outside the checkout, without extras.

Nothing that only a checkout has (`data/`, the current folder on the path) can help it here. It is
installed on this interpreter for every change, and nightly on every supported one that is found.
The stub distribution stands for one that shares a name with ours: AdapterHub's `adapters`.
"""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.interpreters import find, supported

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"toolgym", "sqlgym", "aflowgym", "adapters"}
Finished = subprocess.CompletedProcess[str]
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PLAY = """
import json, sys
import toolgym, sqlgym, aflowgym
ids = toolgym.tool_env_ids()
played = {each: toolgym.evaluate(each, "expert", n=2, split="dev") for each in ids}
print(json.dumps({
    "python": sys.version.split()[0],
    "from": toolgym.__file__,
    "episodes": {each: [len(found.records), found.accuracy] for each, found in played.items()},
}))
"""
"""Plays two episodes of each environment; what it prints is read by the test."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and an empty folder outside the checkout to run commands in."""

    folder: Path
    cwd: Path

    def run(self, command: str, *arguments: str, path: str = "") -> Finished:
        """Run `bin/command` there on a wide terminal; `path` becomes PYTHONPATH."""
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environ |= {"COLUMNS": "400"} | ({"PYTHONPATH": path} if path else {})
        return subprocess.run(
            [str(self.folder / "bin" / command), *arguments],
            cwd=self.cwd,
            env=environ,
            capture_output=True,
            text=True,
        )

    def text(self, command: str, *arguments: str, path: str = "") -> str:
        """What a command prints; it has to succeed."""
        done = self.run(command, *arguments, path=path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def with_wheel(dist: Path, folder: Path, python: str, *options: str) -> Environment:
    """An environment of an interpreter with the wheel and the base dependencies."""
    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    (folder / "elsewhere").mkdir()
    environment = Environment(folder / "venv", folder / "elsewhere")
    [wheel] = dist.glob("*.whl")
    pins = ("-c", str(ROOT / "constraints.txt"))
    environment.text("python", *PIP, "install", *pins, *options, str(wheel))
    return environment


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment of this interpreter."""
    return with_wheel(dist, tmp_path_factory.mktemp("environment"), sys.executable)


@pytest.fixture
def adapters_beside(installed: Environment, tmp_path: Path) -> Iterator[Environment]:
    """The same environment with a stub of AdapterHub's distribution in its site-packages."""
    wheel = stub_wheel(tmp_path, "adapters")
    installed.text("python", *PIP, "install", "--no-index", "--no-deps", str(wheel))
    yield installed
    installed.text("python", *PIP, "uninstall", "--yes", "adapters")


def stub_wheel(folder: Path, name: str) -> Path:
    """A wheel of a distribution whose one module is the regular package of its own name."""
    info = f"{name}-9.9.dist-info"
    members = {
        f"{name}/__init__.py": "stub = True\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    members[f"{info}/RECORD"] = "".join(f"{m},,\n" for m in [*members, f"{info}/RECORD"])
    wheel = folder / f"{name}-9.9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return wheel


def test_the_wheel_carries_the_packages_and_the_tasks_and_nothing_else(dist):
    [wheel] = dist.glob("*.whl")

    names = zipfile.ZipFile(wheel).namelist()

    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == PACKAGES
    assert "adapters/__init__.py" not in names
    packed = {name for name in names if "/_data/" in name}
    source = ROOT / "data"
    there = {p.relative_to(source).as_posix() for p in source.rglob("*") if p.is_file()}
    owner = {"sql": "sqlgym", "workflows": "aflowgym"}
    assert packed == {f"{owner[name.split('/')[0]]}/_data/{name}" for name in there}
    assert {name.split("/")[0] for name in there} == set(owner)
    templates = {
        file.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for ending in ("jinja", "j2", "css")
        for file in (ROOT / package).rglob(f"*.{ending}")
    }
    assert "adapters/training/models/chat_templates/hermes.jinja" in templates
    assert templates <= {*names}


def test_the_source_distribution_carries_the_tests(dist):
    [source] = dist.glob("*.tar.gz")

    with tarfile.open(source) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}

    assert {"tests/project/test_wheel.py", "Makefile", "constraints.txt", "LICENSE"} <= names
    assert not {name for name in names if name.startswith((".venv", "runs/", "dist/"))}


def test_the_package_index_would_take_both_and_show_the_readme(dist):
    pytest.importorskip("twine", reason="needs the extra dev")
    files = sorted(str(file) for file in dist.iterdir())
    check = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files]
    wide = {**os.environ, "COLUMNS": "400"}
    done = subprocess.run(check, capture_output=True, text=True, env=wide)

    assert done.returncode == 0, done.stdout + done.stderr
    said = [line.rpartition(": ") for line in done.stdout.splitlines()]
    assert [(file.removeprefix("Checking "), told) for file, _, told in said] == [
        (file, "PASSED") for file in files
    ]


def test_no_file_of_a_test_or_a_cache_is_in_the_wheel(dist):
    [wheel] = dist.glob("*.whl")
    parts = {part for name in zipfile.ZipFile(wheel).namelist() for part in name.split("/")}

    assert not parts & {"tests", "__pycache__", ".pytest_cache", ".mypy_cache"}
    assert not {part for part in parts if part.endswith((".pyc", ".sqlite")) or "conftest" in part}


def marks(version: str) -> pytest.MarkDecorator:
    return pytest.mark.integration if version == HERE else pytest.mark.nightly


@pytest.mark.parametrize(
    "version", [pytest.param(version, marks=marks(version)) for version in supported()]
)
def test_episodes_of_every_environment_are_played_on_every_interpreter(
    request, dist, tmp_path, version
):
    if version == HERE:
        environment = request.getfixturevalue("installed")
    elif (command := find(version)) is None:
        pytest.skip(f"Python {version} is not on this machine")
    else:
        # It runs one process, so bytecode of all modules would take longer than it saves.
        environment = with_wheel(dist, tmp_path, command, "--no-compile")

    told = json.loads(environment.text("python", "-c", PLAY))

    assert told["python"].startswith(f"{version}.")
    assert environment.folder.resolve() in Path(told["from"]).resolve().parents
    sql = {"sqlgym/Explore-v0": [2, 1.0], "sqlgym/TextToSQL-v0": [2, 1.0]}
    assert told["episodes"].keys() == {*sql, "aflowgym/Compose-v0", "aflowgym/Operate-v0"}
    assert told["episodes"].items() >= sql.items()
    assert all(number == 2 for number, _ in told["episodes"].values())


def test_importing_the_environments_loads_no_training_library(installed):
    code = "import sys, toolgym, sqlgym, aflowgym; print(*sys.modules)"

    loaded = set(installed.text("python", "-c", code).split())

    assert loaded & {"torch", "transformers", "trl", "datasets"} == set()


def test_help_shows_every_command_of_the_core(installed):
    shown = installed.text("toolgym", "--help")

    assert [c for c in ("envs", "eval", "play", "doctor", "train") if c not in shown] == []


def test_train_without_its_extra_says_what_to_install(installed):
    done = installed.run("toolgym", "train", "sqlgym/Explore-v0")

    assert done.returncode != 0
    assert "toolgym[train]" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_doctor_is_content_where_nothing_hides_us(installed):
    assert installed.text("toolgym", "doctor")


def test_a_regular_adapters_in_the_same_site_packages_lies_beside_ours(adapters_beside):
    code = "import adapters, importlib.util as u; print(adapters.stub, u.find_spec('adapters.trl'))"

    told = adapters_beside.text("python", "-c", code)

    assert told.startswith("True ModuleSpec(name='adapters.trl'")


def test_ours_is_whole_after_the_other_adapters_has_come_and_gone(installed, adapters_beside):
    adapters_beside.text("python", *PIP, "uninstall", "--yes", "adapters")

    code = "import importlib.util as u; print(u.find_spec('adapters.trl'))"
    assert installed.text("python", "-c", code).startswith("ModuleSpec(name='adapters.trl'")


@pytest.mark.parametrize("name", ["adapters", "sqlgym"])
def test_doctor_names_a_package_that_hides_ours(installed, tmp_path, name):
    earlier = tmp_path / "earlier"
    (earlier / name).mkdir(parents=True)
    (earlier / name / "__init__.py").write_text("stub = True\n")

    done = installed.run("toolgym", "doctor", path=str(earlier))

    assert str(earlier / name) in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
