"""Each hostile program gets what it is to get, whoever runs the sandbox, and leaves nothing."""

import json
import os
import platform
import re
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from aflowgym.sandbox import walls
from aflowgym.sandbox.filter import architecture
from aflowgym.tasks.loading import bundled_dir
from tests.aflowgym.sandbox.hostile_programs import FEW, GATE, KINDS, PROGRAMS, SLOW

HERE = Path(__file__).resolve().parent
NOBODY = 65534
#: Who runs it.
MODES = ["self", "nobody"]
#: A mode and which of the programs: a few in every run, more for every change, else all.
RUNS = [
    "self few",
    pytest.param("self gate", marks=pytest.mark.integration),
    *(pytest.param(mode, marks=pytest.mark.nightly) for mode in MODES),
    *(pytest.param(f"{mode} slow", marks=pytest.mark.nightly) for mode in MODES),
]
SECONDS = 600

pytestmark = pytest.mark.skipif(
    architecture(os.uname().machine) is None or walls.landlock_version() < 1,
    reason="this kernel has no Landlock, or this machine no table of system calls",
)


def python_for(user: int | None) -> str | None:
    """A Python that this user can start and that can read the repository."""
    script = str(HERE / "sandbox_driver.py")
    probe = f"import sys; open({script!r}); sys.exit(sys.version_info < (3, 11))"
    places = [sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")]
    for place in filter(None, places):
        try:
            done = subprocess.run(
                [place, "-S", "-c", probe], user=user, capture_output=True, cwd="/"
            )
        except OSError:
            continue
        if done.returncode == 0:
            return place
    return None


@pytest.fixture(scope="module", params=RUNS)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """What programs got in a run of one mode, and what was left of them."""
    mode, *words = request.param.split()
    told = reported(mode, tmp_path_factory.mktemp("bait"), *words)
    every = {program.name for program in PROGRAMS}
    chosen = {"few": FEW, "gate": GATE, "slow": SLOW}.get(request.param.split()[-1], every - SLOW)
    assert told["got"].keys() == chosen & every
    return told


def reported(mode: str, folder: Path, *words: str):
    """What programs got in a run of one mode; it skips where that is not to be had."""
    if mode == "nobody" and os.getuid() != 0:
        pytest.skip("only root can start it as another user")
    user = NOBODY if mode == "nobody" else None
    python = python_for(user)
    if python is None:
        pytest.skip("the other user reaches no Python 3.11, or not this repository")
    secret = folder / "secret"
    secret.write_text("API_KEY=of-the-test")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        told = run(python, user, listener.getsockname()[1], secret, *words)
        with pytest.raises(BlockingIOError, match="unavailable"):
            listener.accept()
    assert secret.read_text() == "API_KEY=of-the-test"
    assert stat.S_IMODE(secret.stat().st_mode) != 0o777
    assert list(folder.iterdir()) == [secret]
    return told


def run(python: str, user: int | None, port: int, secret: Path, *more: str):
    tasks = next(bundled_dir().glob("*.jsonl"))
    # Without site: what the driver imports is the standard library, as where another user runs it.
    alone = [python, "-B", "-S", str(HERE / "sandbox_driver.py")]
    words = [*alone, str(port), str(secret), str(tasks)]
    done = subprocess.run(
        [*words, *more],
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": os.environ["PATH"], "API_KEY": "sk-of-the-test"},
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def others_than_expected(got, programs):
    """Programs that got something else: by name, what that is and what it should have been."""
    return {
        program.name: (got[program.name], program.gets)
        for program in programs
        if not re.fullmatch(program.gets, got[program.name], re.DOTALL)
    }


def test_hostile_programs_get_what_they_are_to_get(report):
    programs = [program for program in PROGRAMS if program.name in report["got"]]

    assert others_than_expected(report["got"], programs) == {}


def test_nothing_is_left_on_disk_or_in_the_process_table(report):
    assert report["left"] == []
    assert report["after"] == []
    assert report["changed"] == [], "a worker died, or a child lives on"
    assert report["survivors"] == []


def test_the_level_says_who_ran_it_behind_which_walls(report, request):
    mode = request.node.callspec.params["report"]
    assert report["level"] == "walled"
    assert report["uid"] == (NOBODY if "nobody" in mode else os.getuid())


def test_each_kind_has_programs_in_every_run_and_no_two_have_one_name():
    names = [program.name for program in PROGRAMS]
    assert len(set(names)) == len(names) > 500
    for kind, programs in KINDS.items():
        assert FEW & {program.name for program in programs}, kind
    assert platform.machine() != "x86_64" or set(names) >= GATE
    assert set(names) >= SLOW
