"""Each hostile program gets what it is to get, whoever runs the sandbox, and leaves nothing."""

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from aflowgym.loading import bundled_dir
from aflowgym.sandbox import bubblewrap, walls
from aflowgym.sandbox.syscalls import architecture
from tests.aflowgym.hostile_programs import PROGRAMS

HERE = Path(__file__).resolve().parent
NOBODY = 65534
#: Who runs it, and whether bubblewrap is around it.
MODES = ["self", "self-bubblewrap", "nobody", "nobody-bubblewrap"]
SECONDS = 120

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


@pytest.fixture(scope="module", params=MODES)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """What all the programs got in one run, and what was left of them."""
    who, _, wrapped = request.param.partition("-")
    if wrapped and bubblewrap.found()[0] is None:
        pytest.skip(bubblewrap.found()[1])
    if who == "nobody" and os.getuid() != 0:
        pytest.skip("only root can start it as another user")
    user = NOBODY if who == "nobody" else None
    python = python_for(user)
    if python is None:
        pytest.skip("the other user reaches no Python 3.11, or not this repository")
    folder = tmp_path_factory.mktemp("bait")
    secret = folder / "secret"
    secret.write_text("API_KEY=of-the-test")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        told = run(python, user, listener.getsockname()[1], secret, wrapped)
        with pytest.raises(BlockingIOError, match="unavailable"):
            listener.accept()
    assert secret.read_text() == "API_KEY=of-the-test"
    assert stat.S_IMODE(secret.stat().st_mode) != 0o777
    assert list(folder.iterdir()) == [secret]
    return told


def run(python: str, user: int | None, port: int, secret: Path, wrapped: str):
    tasks = next(bundled_dir().glob("*.jsonl"))
    words = [python, "-B", str(HERE / "sandbox_driver.py"), str(port), str(secret), str(tasks)]
    done = subprocess.run(
        [*words, *(["wrapped"] if wrapped else [])],
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


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_hostile_program_gets_what_it_is_to_get(report, program):
    assert re.fullmatch(program.gets, report["got"][program.name], re.DOTALL)


def test_nothing_is_left_on_disk_or_in_the_process_table(report):
    assert report["left"] == []
    assert report["after"] == []
    assert report["changed"] == [], "a worker died, or a child lives on"
    assert report["survivors"] == []


def test_the_level_says_what_was_around_it(report, request):
    mode = request.node.callspec.params["report"]
    assert report["level"] == ("bubblewrap" if "bubblewrap" in mode else "walled")
    assert report["uid"] == (NOBODY if "nobody" in mode else os.getuid())


def test_there_are_more_than_forty_hostile_programs_and_no_two_of_one_name():
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) >= 40
