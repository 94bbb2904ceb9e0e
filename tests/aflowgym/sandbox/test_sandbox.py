"""The sandbox of warm workers: what it gives, and what becomes of workers, threads and forks."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aflowgym import grade, load_tasks
from aflowgym.answers.code import Outcome
from aflowgym.operators.context import Job
from aflowgym.sandbox import (
    Limits,
    SandboxRefused,
    WalledSandbox,
    child,
    open_sandbox,
    walls,
    worker,
)
from aflowgym.sandbox.base import encode
from aflowgym.sandbox.filter import architecture
from aflowgym.sandbox.process import outcome_of
from aflowgym.tasks.task import WorkflowTask
from tests.sweeps import sweep
from toolgym.errors import ConfigurationError, EnvironmentFault

pytestmark = pytest.mark.skipif(
    architecture(os.uname().machine) is None or walls.landlock_version() < 1,
    reason="this kernel has no Landlock, or this machine no table of system calls",
)
TASK = WorkflowTask(id="t", question="?", item="t", kind="qa", gold="x")
SPLITS = ("train", "dev", "test")


def workers_of(sandbox):
    return {each for each in sandbox._idle.queue if each is not None}


def job(program, *calls, function="f"):
    return Job(TASK, textwrap.dedent(program), function, calls or (("()", "{}"),))


@pytest.fixture(scope="module")
def sandbox():
    with open_sandbox("walled", limits=Limits(cpu_seconds=10, seconds=60.0)) as opened:
        yield opened


@pytest.fixture(scope="module", params=sweep(["every thirtieth", "all"], ["every thirtieth"]))
def code_tasks(request):
    tasks = [t for split in SPLITS for t in load_tasks("bundled", split) if t.kind == "code"]
    assert len(tasks) >= 80
    return tasks if request.param == "all" else tasks[::30]


def test_every_call_has_its_outcome_in_order(sandbox):
    program = """
        def f(x, times=2):
            return 10 // x * times
    """
    calls = (("(5,)", "{}"), ("(0,)", "{}"), ("(1,)", "{'times': 3}"))
    assert sandbox.run(job(program, *calls)) == [
        Outcome("4"),
        Outcome(error="ZeroDivisionError: integer division or modulo by zero (line 3)"),
        Outcome("30"),
    ]


def test_plain_values_come_back_as_literals(sandbox):
    for returned, value in [
        ("None", "None"),
        (
            "[1, -2.5, True, 'a', b'b', (1,), (), 1+2j]",
            "[1, -2.5, True, 'a', b'b', (1,), (), (1+2j)]",
        ),
        ("{'a': {1: [2]}, (1, 2): None}", "{'a': {1: [2]}, (1, 2): None}"),
        ("[set(), frozenset(), {3}]", "[set(), frozenset(), {3}]"),
        ("[float('inf'), float('-inf')]", "[inf, -inf]"),
        ("'\\ud800 \\n \\\\'", "'\\ud800 \\n \\\\'"),
        ("__import__('collections').Counter('aab')", "{'a': 2, 'b': 1}"),
        ("__import__('fractions').Fraction(4, 2)", "2"),
        ("__import__('fractions').Fraction(1, 4)", "0.25"),
        ("__import__('decimal').Decimal('2.50')", "2.5"),
        ("[__import__('fractions').Fraction(-2, 3)]", "[Fraction(-2, 3)]"),
        ("__import__('decimal').Decimal('59.97')", "Decimal('59.97')"),
        ("2 ** 200", str(2**200)),
    ]:
        assert sandbox.run(job(f"def f(): return {returned}")) == [Outcome(value)], returned


def test_an_error_is_told_with_its_message_and_line(sandbox):
    program = """
        def g(n):
            return [1, 2][n]

        def f():
            return g(7)
    """
    assert sandbox.run(job(program)) == [
        Outcome(error="IndexError: list index out of range (line 3)")
    ]
    assert sandbox.run(job("def f(:")) == [Outcome(error="SyntaxError: invalid syntax (line 1)")]


def test_nothing_is_left_for_the_next_call(sandbox):
    program = """
        import builtins, math, os, random
        def f():
            found = hasattr(math, "left"), hasattr(builtins, "left"), *os.environ, random.random()
            math.left = builtins.left = 1
            os.environ["left"] = "x"
            return found
    """
    first, second, third = sandbox.run(job(program, *[("()", "{}")] * 3))
    assert first == second == third
    assert first.value.startswith("(False, False, ")


def test_the_same_program_gives_the_same_value_in_every_worker():
    program = "import random\ndef f(): return list({'a', 'b', 'c', 'd'}), random.random()"
    got = set()
    for _ in range(2):
        with WalledSandbox(1) as sandbox:
            got.update(sandbox.run(job(program)))
    assert len(got) == 1


def test_the_usual_parts_of_the_library_are_there(sandbox):
    program = """
        from __future__ import annotations
        from dataclasses import dataclass
        import collections, csv, heapq, io, itertools, zoneinfo, datetime, sqlite3
        @dataclass
        class Point:
            x: int
        if __name__ == "__main__":
            raise SystemExit
        def f():
            rows = list(csv.reader(io.StringIO("1,2")))
            one = sqlite3.connect(":memory:").execute("select 1").fetchone()
            return Point(3).x, heapq.nsmallest(1, [3, 2]), rows, one
    """
    assert sandbox.run(job(program)) == [Outcome("(3, [2], [['1', '2']], (1,))")]


def test_modules_that_are_asked_for_can_be_imported():
    program = "import numpy\ndef f(): return numpy.linalg.norm([3, 4]), numpy.int64(7)"
    with WalledSandbox(1, preload=["numpy"]) as sandbox:
        assert sandbox.run(job(program)) == [Outcome("(5.0, 7)")]
    with pytest.raises(SandboxRefused, match="No module named 'no_such_module'"):
        WalledSandbox(1, preload=["no_such_module"])


def test_a_value_or_a_program_that_is_too_large_is_an_error_that_says_so(sandbox):
    for program, error in [
        ("#" * (5 << 20), "too_large"),
        ("def f(): return 'a' * (2 << 20)", "too_large: what it returned is too large"),
        ("def f(): return list(range(10**5))", "too_large: what it returned is too large"),
        ("def f(): return 10**10000", "no_literal: it has a number of too many digits"),
    ]:
        (got,) = sandbox.run(job(program))

        assert got.error.startswith(error), program[:50]


def test_the_calls_of_a_job_share_its_time():
    limits = Limits(cpu_seconds=5, seconds=0.4, job_seconds=0.6)
    with WalledSandbox(1, limits) as sandbox:
        got = sandbox.run(job("import time\ndef f(): time.sleep(9)", *[("()", "{}")] * 50))
    assert got == [Outcome(error="timeout")] * 50


def test_a_size_or_the_time_of_any_path_is_told(sandbox):
    """The known leak: it is in the level's gaps, and here so that nobody thinks it closed."""
    program = f"import os\ndef f(): return os.stat({__file__!r}).st_size > 0"
    (got,) = sandbox.run(job(program))
    assert got == Outcome("True")
    assert "stat() and readlink() tell of any path" in sandbox.level.gaps[0]


def test_the_level_names_walls_and_what_was_proved(sandbox):
    assert sandbox.level.is_safe
    assert {"forking", "connecting", "reading a secret file"} <= set(sandbox.level.proved)
    told = str(sandbox.level)
    assert told.startswith(f"sandbox: {sandbox.level.kind}\n  walls: seccomp")
    assert "\n  proved: " in told


def test_solutions_of_bundled_code_tasks_pass_and_distractors_fail(sandbox, code_tasks):
    programs = [(task, task.solution) for task in code_tasks]
    programs += [(task, wrong) for task in code_tasks for wrong in task.distractors]
    with ThreadPoolExecutor(2) as pool:
        verdicts = pool.map(lambda pair: grade(*pair, sandbox).correct, programs)
    for (task, program), right in zip(programs, verdicts, strict=True):
        assert right is (program == task.solution), (task.id, program)


def test_many_threads_share_two_workers(sandbox):
    jobs = [job("def f(x): return x * x", (f"({n},)", "{}")) for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(sandbox.run, jobs))
    assert got == [[Outcome(str(n * n))] for n in range(24)]
    assert len(workers_of(sandbox)) <= 2


def test_a_worker_that_dies_in_the_middle_of_a_call_is_replaced():
    with WalledSandbox(1) as sandbox, ThreadPoolExecutor(1) as pool:
        (lost,) = workers_of(sandbox)
        running = pool.submit(sandbox.run, job("import time\ndef f(): time.sleep(0.5); return 2"))
        time.sleep(0.2)
        lost.process.kill()
        assert running.result() == [Outcome("2")]


def test_walls_that_cannot_be_put_up_are_the_machines_failure(tmp_path):
    def walls_fall():
        raise OSError("there is no wall")

    job_fd, result, (told, begun) = os.memfd_create("job"), os.memfd_create("result"), os.pipe()
    os.write(job_fd, encode("open('ran', 'w')", "f", "()", "{}"))
    os.lseek(job_fd, 0, os.SEEK_SET)
    pid = os.fork()
    if pid == 0:
        child.run(job_fd, result, begun, walls_fall)
    os.waitpid(pid, 0)
    reason = os.read(told, 200)
    for fd in (job_fd, result, told, begun):
        os.close(fd)
    assert reason == b"there is no wall"
    assert list(tmp_path.iterdir()) == [], "the program ran without walls"
    with pytest.raises(
        EnvironmentFault, match="restrictions of a sandbox could not be applied: there is no wall"
    ):
        outcome_of(worker.REPORT.pack(worker.NO_WALLS, 0) + reason, b"")


def test_a_parent_with_many_open_files_hands_none_on(tmp_path):
    opened = [open(tmp_path / str(number), "w") for number in range(200)]  # noqa: SIM115
    program = """
        import os
        def f():
            found = []
            for number in range(1 << 16):
                try:
                    os.fstat(number)
                except OSError:
                    continue
                found.append(number)
            return found
    """
    try:
        with WalledSandbox(1) as sandbox:
            assert sandbox.run(job(program)) == [Outcome("[0, 1, 2, 3]")]
    finally:
        for file in opened:
            file.close()


def test_a_closed_sandbox_leaves_nothing_and_says_that_it_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = os.listdir("/proc/self/fd")
    sandbox = WalledSandbox(2)
    (process,) = workers_of(sandbox)
    sandbox.run(job("def f(): return 1", *[("()", "{}")] * 3))
    sandbox.close()
    sandbox.close()
    assert process.process.returncode is not None
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == len(before)
    with pytest.raises(ConfigurationError, match="closed; open another"):
        sandbox.run(job("def f(): return 1"))


def test_a_forked_process_has_workers_of_its_own(sandbox):
    mine = {each.process.pid for each in workers_of(sandbox)}
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            got = sandbox.run(job("def f(): return 5"))
            own = {each.process.pid for each in workers_of(sandbox)}
            sandbox.close()
            os.write(write, b"ok" if got == [Outcome("5")] and not own & mine else b"no")
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    assert os.read(read, 9) == b"ok"
    os.close(read)
    assert sandbox.run(job("def f(): return 6")) == [Outcome("6")]


@pytest.mark.parametrize(
    "program",
    ["while True: pass", pytest.param("None", marks=pytest.mark.nightly)],
    ids=["busy", "idle"],
)
def test_workers_end_with_their_parent_even_if_it_is_killed(tmp_path, program):
    script = f"""
        import os, sys, tempfile, threading, time
        tempfile.tempdir = {str(tmp_path)!r}
        from aflowgym.operators.context import Job
        from aflowgym.sandbox import WalledSandbox
        sandbox = WalledSandbox(1)
        (worker,) = filter(None, sandbox._idle.queue)
        job = Job(None, {program!r}, "f")
        threading.Thread(target=sandbox.run, args=[job], daemon=True).start()
        time.sleep(0.3)
        print(worker.process.pid, flush=True)
        os.kill(os.getpid(), 9)
    """
    words = [sys.executable, "-c", textwrap.dedent(script)]
    root = Path(__file__).parents[3]
    done = subprocess.run(words, capture_output=True, text=True, cwd=root, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if not os.path.exists(f"/proc/{int(done.stdout)}") and not list(tmp_path.iterdir()):
            break
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{int(done.stdout)}")
    assert list(tmp_path.iterdir()) == []


def test_limits_above_zero_only():
    with pytest.raises(ConfigurationError, match="Limits: seconds must be above zero"):
        Limits(seconds=0)
    with pytest.raises(ConfigurationError, match="workers must be at least 1"):
        WalledSandbox(0)


def test_a_worker_that_cannot_start_says_why(tmp_path, monkeypatch):
    script = tmp_path / "broken-python"
    script.write_text("#!/bin/sh\necho it is broken >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(EnvironmentFault, match=r"did not start\. Its output: it is broken"):
        WalledSandbox(1)


def test_a_worker_that_dies_is_replaced():
    with WalledSandbox(1) as sandbox:
        (lost,) = workers_of(sandbox)
        lost.process.kill()
        assert sandbox.run(job("def f(): return 1")) == [Outcome("1")]
        (other,) = workers_of(sandbox)
        assert other is not lost


def test_opening_and_closing_leaves_no_descriptor_open():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        with WalledSandbox(1) as sandbox:
            sandbox.run(job("def f(): return 1", *[("()", "{}")] * 3))
    assert len(os.listdir("/proc/self/fd")) == before
