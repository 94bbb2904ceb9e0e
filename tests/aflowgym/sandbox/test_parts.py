"""The parts of the sandbox by themselves: filter, values, refusal, the other two sandboxes."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aflowgym.answers.code import Outcome
from aflowgym.answers.literals import read_literal
from aflowgym.operators.context import Job
from aflowgym.sandbox import (
    Limits,
    SandboxRefused,
    SubsetSandbox,
    UnsafeSandbox,
    default_sandbox,
    open_sandbox,
    values,
    walls,
    worker,
)
from aflowgym.sandbox import filter as filter_
from aflowgym.sandbox.filter import BY_ARGUMENT, architecture
from aflowgym.tasks.task import WorkflowTask
from toolgym.errors import EnvironmentFault

ROOT = Path(__file__).resolve().parents[3]
MACHINES = ["x86_64", "aarch64"]
TASK = WorkflowTask(id="t", question="?", item="t", kind="qa", gold="x")
needs_walls = pytest.mark.skipif(
    architecture(os.uname().machine) is None or walls.landlock_version() < 1,
    reason="this kernel has no Landlock, or this machine no table of system calls",
)


def test_a_program_may_read_the_standard_library_and_no_package_beside_it(tmp_path, monkeypatch):
    for name in ("json", "site-packages", "dist-packages"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(worker.sysconfig, "get_path", lambda name: str(tmp_path))
    granted = [path for path in worker.readable_paths(()) if path.startswith(str(tmp_path))]
    assert granted == [str(tmp_path / "json")]


def job(program, *calls):
    return Job(TASK, textwrap.dedent(program), "f", calls or (("()", "{}"),))


def answer(machine, number, *arguments, audit=None):
    """What the filter answers to a call: a machine of its own for the few instructions used."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    words = {0: number, 4: machine.audit if audit is None else audit}
    for place, value in enumerate(padded):
        words[16 + 8 * place] = value & 0xFFFFFFFF
        words[20 + 8 * place] = value >> 32
    program, at, held = filter_.instructions(machine), 0, 0
    while True:
        code, true, false, operand = program[at]
        at += 1
        match code:
            case 0x20:
                held = words[operand]
            case 0x54:
                held &= operand
            case 0x06:
                return operand
            case 0x15:
                at += true if held == operand else false
            case 0x35:
                at += true if held >= operand else false
            case 0x45:
                at += true if held & operand else false


@pytest.mark.parametrize("name", MACHINES)
def test_the_filter_allows_what_is_in_the_table_and_nothing_else(name):
    machine = architecture(name)
    plain = {n for call, n in machine.calls.items() if call not in BY_ARGUMENT}
    conditional = {n for call, n in machine.calls.items() if call in BY_ARGUMENT}
    for number in range(1024):
        if number in conditional:
            continue
        wanted = filter_.EPERM if number < 424 else filter_.ENOSYS
        assert answer(machine, number) == (filter_.ALLOW if number in plain else wanted), number


@pytest.mark.parametrize("name", MACHINES)
def test_calls_by_another_abi_kill(name):
    machine = architecture(name)
    read = machine.calls["read"]
    for audit in (0x40000003, 0x40000028, 0xC0000000, 0):
        assert answer(machine, read, audit=audit) == filter_.KILL
    assert answer(machine, 0x40000000 + read) == filter_.KILL


@needs_walls
@pytest.mark.integration
def test_without_landlock_the_walls_are_refused_and_the_subset_takes_over_and_says_so():
    """A filter makes a system call fail as on an older kernel."""
    script = """
        import os, platform, struct
        from aflowgym.sandbox import SandboxRefused, filter as f, open_sandbox, walls
        code = f.Instruction
        program = [code(0x20, 0, 0, 0), code(0x15, 0, 1, 444), code(6, 0, 0, f.ENOSYS)]
        program.append(code(6, 0, 0, f.ALLOW))
        walls.forgo_privileges()
        walls.Filter(b"".join(struct.pack("=HBBI", *each) for each in program)).enforce()
        for kind in ("walled", "auto"):
            try:
                print(open_sandbox(kind).level)
            except SandboxRefused as problem:
                print(problem)
    """
    refused, *told = printed(textwrap.dedent(script)).splitlines()
    assert refused.startswith(
        "there is no safe sandbox for programs: a restriction does not work on this machine: the"
        " kernel has no Landlock, or it is disabled."
    )
    assert refused.endswith("pass unsafe=True.")
    if importlib.util.find_spec("pydantic_monty") is not None:
        assert told[0] == "sandbox: subset"
        assert told[1].startswith("  walls: pydantic-monty: an interpreter of a SUBSET")


def printed(script):
    """The output of a script in a process of its own."""
    words = [sys.executable, "-c", script]
    return subprocess.run(
        words, capture_output=True, text=True, cwd=ROOT, check=True, timeout=600
    ).stdout


def test_importing_the_package_imports_no_sandbox():
    loaded = printed("import aflowgym, sys; print(*sys.modules)").split()
    assert not [name for name in loaded if "monty" in name or name.startswith("aflowgym.sandbox")]


@needs_walls
def test_the_default_sandbox_is_one_for_the_process_until_it_is_closed():
    first = default_sandbox()
    assert default_sandbox() is first
    first.close()
    assert default_sandbox().run(job("def f(): return 1")) == [Outcome("1")]


@settings(max_examples=60)
@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["list", "set", "dict"]),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
        ),
    ).map(lambda form: json.dumps({"value": form}).encode())
)
def test_no_bytes_of_a_program_make_the_parent_raise(content):
    text, error = values.outcome(content)
    assert bool(text) != bool(error)
    if text:
        read_literal(text)


@pytest.fixture(scope="module")
def subset():
    pytest.importorskip("pydantic_monty")
    with SubsetSandbox(2, Limits(cpu_seconds=1)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param("while True: pass", "timeout", marks=pytest.mark.integration),
        pytest.param("return 9 ** 9 ** 8", ("memory", "timeout"), marks=pytest.mark.nightly),
        ("return 'x' * 10 ** 10", "memory"),
        ("return f()", "RecursionError: maximum recursion depth exceeded"),
        ("return open('/etc/passwd').read()", "PermissionError: Permission denied: '/etc/passwd'"),
        ("class E:\n        def __eq__(self, o): return True\n    return E()", "no_literal"),
    ],
)
def test_the_subset_holds_hostile_programs(subset, body, error):
    (got,) = subset.run(job(f"def f():\n    {body}"))
    assert got.error.startswith(error)


@pytest.mark.parametrize(
    "program",
    [
        "import heapq\ndef f(): return heapq.nsmallest(1, [2])",
        "def f(): return list(g())\ndef g(): yield 1",
        "class E(ValueError): pass\ndef f(): return 1",
        "def f(): return compile('1', 'a', 'eval')",
        "import re\ndef f(): return re.sub('a', lambda m: 'b', 'a')",
        "import os\ndef f(): return os.getpid()",
    ],
)
def test_what_the_subset_lacks_fails_no_solution(subset, program):
    with pytest.raises(EnvironmentFault, match="could not run a program"):
        subset.run(job(program))


def test_without_the_library_the_subset_is_refused_with_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    cure = r"the subset interpreter is not installed. Run: pip install 'toolgym\[sandbox\]'"
    with pytest.raises(SandboxRefused, match=cure):
        open_sandbox("subset")


def test_unsafe_has_to_be_said_and_is_told():
    with open_sandbox(unsafe=True) as sandbox:
        assert isinstance(sandbox, UnsafeSandbox)
        assert not sandbox.level.is_safe
        assert "(NOT SAFE)" in str(sandbox.level)


def test_the_unsafe_one_stops_what_is_only_clumsy():
    with UnsafeSandbox(1, Limits(seconds=0.2)) as sandbox:
        (got,) = sandbox.run(job("import time\ndef f(): time.sleep(600)"))
        assert got.error == "timeout"
    with UnsafeSandbox(2, Limits(cpu_seconds=60, seconds=120.0, memory_mb=64)) as sandbox:
        for body, error in (
            ("return bytearray(1 << 30)", "memory"),
            ("import os; os._exit(0)", "exit"),
            ("import ctypes; ctypes.string_at(0)", "crash: SIGSEGV"),
            ("return object()", "no_literal"),
        ):
            (got,) = sandbox.run(job(f"def f():\n    {body}"))
            assert got.error.startswith(error)
        assert sandbox.run(job("def f(x): return x", ("(1,)", "{}"), ("(2,)", "{}"))) == [
            Outcome("1"),
            Outcome("2"),
        ]


@pytest.mark.parametrize("name", MACHINES)
def test_arguments_decide_where_they_have_to(name):
    machine = architecture(name)
    calls, allow, eperm = machine.calls, filter_.ALLOW, filter_.EPERM
    trunc, cloexec = os.O_TRUNC, os.O_CLOEXEC
    for flags, wanted in (
        (os.O_RDONLY | cloexec, allow),
        (os.O_WRONLY | trunc, allow),
        (os.O_RDWR | trunc | os.O_CREAT, allow),
        (os.O_RDONLY | trunc, eperm),
        (3 | trunc, eperm),
    ):
        assert answer(machine, calls["openat"], 2**32 - 100, 1, flags) == wanted
        if "open" in calls:
            assert answer(machine, calls["open"], 1, flags) == wanted
    for command in range(2048):
        wanted = allow if command in filter_.FCNTL else eperm
        assert answer(machine, calls["fcntl"], 0, command) == wanted
    assert answer(machine, calls["ioctl"], 0, 0x5401) == allow
    assert answer(machine, calls["ioctl"], 0, 0x5412) == filter_.ENOTTY
    nameless = 0o20000000
    for flags in (nameless, nameless | os.O_RDWR, nameless | os.O_WRONLY | trunc, (1 << 32) - 1):
        assert answer(machine, calls["openat"], 2**32 - 100, 1, flags) == filter_.EOPNOTSUPP


def test_a_machine_without_a_table_is_unknown():
    assert architecture("riscv64") is None
    assert architecture("i686") is None


def run_without(call: str, then: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process for which a system call is not there, as on an older kernel."""
    script = f"""
        import os, platform, struct
        from aflowgym.sandbox import filter as f, walls
        from aflowgym.sandbox.filter import architecture
        machine = architecture(platform.machine())
        code, no = f.Instruction, f.ENOSYS
        program = [code(0x20, 0, 0, 0), code(0x15, 0, 1, {call}), code(6, 0, 0, no)]
        program.append(code(6, 0, 0, f.ALLOW))
        walls.forgo_privileges()
        walls.Filter(b"".join(struct.pack("=HBBI", *each) for each in program)).enforce()
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script) + textwrap.dedent(then)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@needs_walls
@pytest.mark.integration
def test_without_seccomp_the_walls_are_refused_as_the_machines_failure():
    number = {"x86_64": 157, "aarch64": 167}[os.uname().machine]  # prctl
    script = "from aflowgym.sandbox import open_sandbox; open_sandbox('walled')"
    done = run_without(str(number), script)
    assert done.returncode == 1
    assert "a restriction does not work on this machine: [Errno 38] prctl" in done.stderr
