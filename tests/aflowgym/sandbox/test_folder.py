"""What a program keeps on the disk is counted, with a name or without; no other program sees it."""

import os
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

from aflowgym.answers.code import Outcome
from aflowgym.operators.context import Job
from aflowgym.sandbox import Limits, WalledSandbox, walls
from aflowgym.sandbox import filter as filter_
from aflowgym.sandbox.filter import architecture
from tests.aflowgym.sandbox.test_parts import MACHINES, answer
from tests.sweeps import sweep

needs_walls = pytest.mark.skipif(
    architecture(os.uname().machine) is None or walls.landlock_version() < 1,
    reason="this kernel has no Landlock, or this machine no table of system calls",
)
#: With files of 700 kB in hand, a program waits until it has been looked at.
PROGRAM = """
import ctypes, mmap, os, tempfile, time

def map_it(file):
    return ctypes.CDLL(None).mmap(None, 4096, 1, 1, file, 0)

def f(count):
    kept = []
    for n in range(count):
        name = f"file{n}"
        file = os.open(name, os.O_CREAT | os.O_RDWR)
        os.write(file, bytes(700_000))
        BODY
    time.sleep(SECONDS)
    return len(kept)
"""
MB_LIMITS = Limits(cpu_seconds=60, seconds=120.0, file_mb=1, folder_mb=3, files=10)
WAYS = {
    "named": "kept.append(os.close(file))",
    "open": "kept.append(file); os.unlink(name)",
    "twice open": "kept.append((file, os.dup(file))); os.unlink(name)",
    "mapped": "kept.append(map_it(file)); os.close(file); os.unlink(name)",
    "replaced": "kept.append(file); os.rename(name, 'same')",
    "open and mapped": "kept.append((file, map_it(file))); os.unlink(name)",
    "open by the library": """os.close(file); os.unlink(name)
        kept.append(tempfile.TemporaryFile())
        kept[-1].write(bytes(700_000))
        kept[-1].flush()""",
}


@pytest.fixture(scope="module")
def small():
    with WalledSandbox(2, MB_LIMITS) as opened:
        yield opened


def kept(sandbox, body, count, seconds=0.2):
    program = PROGRAM.replace("BODY", body).replace("SECONDS", str(seconds))
    job = Job(None, program, "f", ((f"({count},)", "{}"),))
    (got,) = sandbox.run(job)
    return got.error or got.value


@needs_walls
@pytest.mark.parametrize("way", sweep(WAYS, ["named", "mapped"]))
def test_a_program_may_keep_what_fits(small, way):
    assert kept(small, WAYS[way], 3) == "3"


@needs_walls
@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_keeps_more_is_ended_however_it_keeps_it(small, way):
    assert kept(small, WAYS[way], 6, seconds=100) == "disk: it wrote too much"


@needs_walls
def test_what_was_removed_and_closed_is_free_again(small):
    assert kept(small, "os.close(file); os.unlink(name); kept.append(n); time.sleep(0.01)", 40) == (
        "40"
    )


@needs_walls
def test_a_temporary_file_of_the_library_works_and_has_no_name(small):
    program = """
        import mmap, os, tempfile
        def f():
            with tempfile.TemporaryFile() as file, tempfile.NamedTemporaryFile() as other:
                file.write(b"abc" * 2000)
                other.write(b"x")
                file.flush()
                with mmap.mmap(file.fileno(), 0) as mapped:
                    return bytes(mapped[:3]), len(os.listdir("."))
    """
    assert small.run(Job(None, textwrap.dedent(program), "f")) == [Outcome("(b'abc', 1)")]


@needs_walls
def test_no_program_sees_the_memory_or_the_files_of_another(small):
    """Workers look at their children; the children are not to look at each other."""
    program = """
        import os, time
        SECRET = "kept-" "by-one"
        def f():
            time.sleep(0.2)  # so that both are there
            me, others, opened = os.getpid(), [], []
            for pid in range(max(2, me - 200), me + 200):
                if pid == me or not os.path.exists(f"/proc/{pid}"):
                    continue
                others.append(pid)
                for name in ("mem", "maps", "environ", "fd/3", "cwd/.", "root/etc", "stat", "io"):
                    try:
                        os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
                    except OSError:
                        continue
                    opened.append(name)
                for name in ("exe", "cwd", "root", "fd/3"):
                    try:
                        os.readlink(f"/proc/{pid}/{name}")
                    except OSError:
                        continue
                    opened.append("link of " + name)
            time.sleep(0.3)
            return len(others) > 0, opened
    """
    job = Job(None, textwrap.dedent(program), "f")
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(small.run, [job, job]))
    assert both == [[Outcome("(True, [])")]] * 2


@pytest.mark.parametrize("name", MACHINES)
def test_no_file_without_a_name_and_no_device_by_a_rename(name):
    machine = architecture(name)
    calls = machine.calls
    opening = [("openat", (2**32 - 100, 1))] + ([("open", (1,))] if "open" in calls else [])
    for flags in (0o20000000, 0o20200002, 0o20200000, 0o20200001 | os.O_TRUNC, (1 << 32) - 1):
        for call, before in opening:
            assert answer(machine, calls[call], *before, flags) == filter_.EOPNOTSUPP
    for call, before in opening:
        assert answer(machine, calls[call], *before, 0o200000) == filter_.ALLOW  # a folder
    for flags in range(64):
        wanted = filter_.ALLOW if flags in (0, 1, 2) else filter_.EPERM
        assert answer(machine, calls["renameat2"], 1, 2, 3, 4, flags) == wanted
