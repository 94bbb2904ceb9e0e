"""Programs that try to get out of the sandbox, and what each is to get; see `hostile_case`.

Here are those that go at files, `/proc`, the network, processes, resources and the result, and the
list of all.
"""

import platform

from tests.aflowgym.sandbox.hostile_case import HIDDEN, REFUSED, Hostile, body
from tests.aflowgym.sandbox.hostile_forgers import REPLACED, SEARCHES, SURROUNDINGS
from tests.aflowgym.sandbox.hostile_kernel import ARGUMENTS, DESCRIPTORS, RAW_OF_KERNEL, raw
from tests.aflowgym.sandbox.hostile_limits import CRASHES, DISK, MEMORIES
from tests.aflowgym.sandbox.hostile_values import CONTAINERS, NUMBERS, OBJECTS, TEXTS

FILES = [
    Hostile("read_a_secret", HIDDEN, body("return open('SECRET').read()")),
    Hostile("read_passwd", HIDDEN, body("return open('/etc/passwd').read()")),
    Hostile("list_the_root", REFUSED, body("return os.listdir('/')")),
    Hostile("list_the_parent_folder", REFUSED, body("return os.listdir('..')")),
    Hostile("read_the_task_files", HIDDEN, body("return open('TASKS').read()")),
    Hostile("write_outside", HIDDEN, body("open('OUTSIDE', 'w').write('x')")),
    Hostile("write_beside_its_folder", REFUSED, body("open('../beside', 'w').write('x')")),
    Hostile(
        "write_into_the_library", f"{REFUSED}|OSError.*", body("open(os.__file__, 'a').write('x')")
    ),
    Hostile(
        "empty_a_file_by_reading_it",
        REFUSED,
        body("os.open(os.__file__, os.O_RDONLY | os.O_TRUNC)"),
    ),
    Hostile("truncate", REFUSED, body("os.truncate('SECRET', 0)")),
    Hostile("delete", HIDDEN, body("os.unlink('SECRET')")),
    Hostile(
        "rename_out",
        f"{REFUSED}|OSError.*|FileNotFoundError.*",
        body("open('a', 'w').close()\nos.rename('a', 'OUTSIDE')"),
    ),
    Hostile("symlink", REFUSED, body("os.symlink('/', 'everything')")),
    Hostile("hard_link", REFUSED, body("os.link('SECRET', 'mine')")),
    Hostile("make_a_folder", REFUSED, body("os.mkdir('deep')")),
    Hostile("make_a_device", REFUSED, body("os.mknod('disk', 0o60666, os.makedev(8, 0))")),
    Hostile("make_a_pipe", REFUSED, body("os.mkfifo('pipe')")),
    Hostile("chmod", REFUSED, body("os.chmod('SECRET', 0o777)")),
    Hostile("chmod_its_folder", REFUSED, body("os.chmod('.', 0)")),
    Hostile("chown", REFUSED, body("os.chown('SECRET', 1, 1)")),
    Hostile("change_times", REFUSED, body("os.utime('SECRET', (0, 0))")),
    Hostile("set_an_attribute", REFUSED, body("os.setxattr('SECRET', 'user.x', b'1')")),
    Hostile("change_the_folder", REFUSED, body("os.chdir('/')")),
    Hostile("change_the_root", REFUSED, body("os.chroot('.')")),
    Hostile("leave_a_file", REFUSED, body("open('left', 'w').write('x')\nreturn 'left'")),
]
PROC = [
    Hostile(
        "proc_parent_environ", HIDDEN, body("return open('/proc/PARENT/environ', 'rb').read()")
    ),
    Hostile("proc_own_environ", REFUSED, body("return open('/proc/self/environ', 'rb').read()")),
    Hostile("proc_own_maps", REFUSED, body("return open('/proc/self/maps').read()")),
    Hostile("proc_parent_memory", REFUSED, body("open(f'/proc/{os.getppid()}/mem', 'r+b')")),
    Hostile("proc_descriptors", REFUSED, body("return os.listdir('/proc/self/fd')")),
    Hostile("proc_list", REFUSED, body("return os.listdir('/proc')")),
    Hostile(
        "proc_link_of_the_worker",
        HIDDEN,
        body("return os.readlink(f'/proc/{os.getppid()}/fd/3')"),
    ),
    Hostile("read_a_device", HIDDEN, body("open('/dev/mem', 'rb').read(1)")),
    Hostile(
        "open_the_terminal",
        f"{REFUSED}|OSError.*|FileNotFoundError.*",
        body("open('/dev/tty', 'w')"),
    ),
    Hostile(
        "read_the_environment",
        r"value \['HOME', 'LANG', 'TZ'\]",
        body("return sorted(os.environ)"),
    ),
    Hostile(
        "read_the_first_environment",
        r"value \[None, None, None\]",
        body(
            """
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
return [getenv(name) for name in (b"API_KEY", b"PATH", b"PYTHONPATH")]
"""
        ),
    ),
    Hostile(
        "inherited_descriptors",
        r"value \[0, 1, 2, 3\]",
        body(
            """
found = []
for number in range(1024):
    try:
        os.fstat(number)
    except OSError:
        continue
    found.append(number)
return found
"""
        ),
    ),
]
NETWORK = [
    Hostile(
        "connect",
        REFUSED,
        body("""
import socket
socket.create_connection(('127.0.0.1', PORT), 1)
return 'connected'
"""),
    ),
    Hostile(
        "udp", REFUSED, body("import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM)")
    ),
    Hostile("unix_socket", REFUSED, body("import socket\nsocket.socket(socket.AF_UNIX)")),
    Hostile("netlink", REFUSED, body("import socket\nsocket.socket(socket.AF_NETLINK, 3, 0)")),
    Hostile("socket_pair", REFUSED, body("import socket\nsocket.socketpair()")),
    Hostile(
        "look_up_a_name",
        "(gaierror|PermissionError|OSError).*",
        body("import socket\nsocket.getaddrinfo('example.org', 80)"),
    ),
]
PROCESSES = [
    Hostile("fork", REFUSED, body("os.fork()")),
    Hostile(
        "fork_bomb",
        REFUSED,
        body("""
while True:
    if os.fork() == 0:
        pass
"""),
    ),
    Hostile("forkpty", "(PermissionError|OSError).*", body("os.forkpty()")),
    Hostile(
        "posix_spawn",
        "(PermissionError|OSError).*",
        body("os.posix_spawn('/bin/true', ['true'], {})"),
    ),
    Hostile(
        "subprocess", "PermissionError.*", body("import subprocess\nsubprocess.run(['/bin/true'])")
    ),
    Hostile("system", "value -1|value (32512|256)", body("return os.system('true')")),
    Hostile("exec", REFUSED, body("os.execv('/bin/true', ['true'])")),
    Hostile(
        "thread",
        "RuntimeError: can't start new thread.*",
        body("import threading\nthreading.Thread(target=print).start()"),
    ),
    Hostile(
        "multiprocessing",
        "PermissionError.*|OSError.*|FileNotFoundError.*",
        body(
            """
import multiprocessing
multiprocessing.get_context('fork').Process(target=print).start()
"""
        ),
    ),
    Hostile(
        "daemon",
        REFUSED,
        body(
            """
if os.fork() == 0:
    os.setsid()
    import time; time.sleep(9); open('OUTSIDE', 'w')
return 'gone'
"""
        ),
    ),
    Hostile("signal_the_parent", REFUSED, body("os.kill(PARENT, 10)")),
    Hostile("signal_the_worker", REFUSED, body("os.kill(os.getppid(), 9)")),
    Hostile("signal_everybody", REFUSED, body("os.kill(-1, 9)")),
    Hostile("signal_the_group", REFUSED, body("os.killpg(0, 9)")),
    Hostile("kill_itself", REFUSED, body("os.kill(os.getpid(), 9)")),
    Hostile(
        "signal_by_a_pipes_owner",
        REFUSED,
        body("""
import fcntl
r, w = os.pipe()
fcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())
"""),
    ),
    Hostile(
        "grow_a_pipe",
        REFUSED,
        body("""
import fcntl
r, w = os.pipe()
fcntl.fcntl(r, 1031, 1 << 20)
"""),
    ),
    Hostile(
        "type_into_the_terminal",
        "OSError.*|PermissionError.*",
        body("import fcntl\nfcntl.ioctl(0, 0x5412, b'x')"),
    ),
    Hostile(
        "outlive_the_worker", "value -1", body("return ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)")
    ),
    Hostile(
        "raise_a_limit",
        "(PermissionError|ValueError|OSError).*",
        body("import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))"),
    ),
    Hostile(
        "limit_another",
        REFUSED,
        body("""
import resource
resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))
"""),
    ),
    Hostile(
        "look_at_anothers_limit",
        REFUSED,
        body("""
import resource
return resource.prlimit(os.getppid(), resource.RLIMIT_CPU)
"""),
    ),
    Hostile("be_nice", REFUSED, body("os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)")),
    Hostile("become_root", "(PermissionError|OSError).*", body("os.setuid(0)")),
    Hostile("new_session", REFUSED, body("os.setsid()")),
    Hostile("pin_a_core", REFUSED, body("os.sched_setaffinity(0, {0})")),
    Hostile("memory_file", REFUSED, body("os.memfd_create('x')")),
]
RESOURCES = [
    Hostile("allocate", "memory", body("return len(bytearray(3 << 30))")),
    Hostile(
        "grow_a_list",
        "memory",
        body("""
kept = []
while True:
    kept.append('x' * 10**7)
"""),
    ),
    Hostile("map_memory", "(OSError|memory).*", body("import mmap\nmmap.mmap(-1, 4 << 30)")),
    Hostile(
        "a_large_file",
        REFUSED,
        body("open('large', 'wb').write(bytes(64 << 20))"),
    ),
    Hostile(
        "open_files",
        "OSError.*",
        body("""
kept = []
while True:
    kept.append(open(os.devnull))
"""),
    ),
    Hostile(
        "flood_the_output",
        "value 'done'",
        body("""
for _ in range(20000):
    print('x' * 1000)
return 'done'
"""),
    ),
    Hostile("sleep", "timeout", body("import time\ntime.sleep(600)")),
    Hostile("busy_loop", "timeout", body("while True: pass")),
    Hostile(
        "loop_that_catches_everything",
        "timeout",
        body(
            """
import signal
for n in range(1, 65):
    try:
        signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    try:
        while True: pass
    except BaseException: pass
"""
        ),
    ),
    Hostile("regular_expression", "timeout", body("import re\nre.match('(a+)+$', 'a' * 40 + 'b')")),
    Hostile("big_integer", "timeout|memory", body("return 9 ** 9 ** 8")),
    Hostile("big_text_of_an_integer", "no_literal.*", body("return 10 ** 5000")),
    Hostile(
        "deep_recursion",
        "(RecursionError|memory|timeout|crash: SIGSEGV).*",
        body("""
sys.setrecursionlimit(10**9)
def g(n): return g(n + 1)
return g(0)
"""),
    ),
    Hostile(
        "deep_source",
        "(memory|RecursionError|SyntaxError|crash).*",
        body("return eval('(' * 10**5)"),
    ),
    Hostile("crash", "crash: SIGSEGV", body("ctypes.string_at(0)")),
    Hostile("abort", "crash: .*", body("os.abort()")),
    Hostile("exit", "SystemExit: 0.*", body("sys.exit(0)")),
    Hostile("exit_at_once", "exit: .*", body("os._exit(0)")),
    Hostile("exit_as_if_the_machine_failed", "exit: .*", body("os._exit(70)")),
]
RESULTS = [
    Hostile(
        "equal_to_everything",
        "no_literal.*",
        """
class E:
    def __eq__(self, o): return True
    __hash__ = None
def f(): return E()
""",
    ),
    Hostile(
        "a_list_equal_to_everything",
        r"value \[1\]",
        """
class E(list):
    def __eq__(self, o): return True
    def __iter__(self): return iter([2])
    def __repr__(self): return '[3]'
def f(): return E([1])
""",
    ),
    Hostile(
        "a_number_equal_to_everything",
        "value 7",
        """
class E(int):
    def __eq__(self, o): return True
    def __repr__(self): return '8'
    def __index__(self): return 9
def f(): return E(7)
""",
    ),
    Hostile(
        "a_text_equal_to_everything",
        "value 'a'",
        """
class E(str):
    def __eq__(self, o): return True
    def __str__(self): return 'b'
    __repr__ = __str__
def f(): return E('a')
""",
    ),
    Hostile(
        "pretends_to_be_a_list",
        "(no_literal|TypeError).*",
        """
class E:
    __class__ = list
def f(): return E()
""",
    ),
    Hostile("print_passed", "value None", body("print('{\"value\": 1}')\nprint('PASSED')")),
    Hostile(
        "write_a_value_of_its_own", "value 42", body("os.write(3, b'{\"value\": 42}')\nos._exit(0)")
    ),
    Hostile("write_two_values", "no_literal.*", body("os.write(3, b'{\"value\": 42}')\nreturn 43")),
    Hostile(
        "write_an_outcome_of_the_machine",
        "no_literal.*",
        body('os.write(3, b\'{"fault": true, "correct": true}\')\nos._exit(0)'),
    ),
    Hostile(
        "write_code_as_a_value",
        r"value '__import__\(.os.\)'",
        body("return '__import__(1)'.replace('1', chr(34) + 'os' + chr(34)).replace(chr(34), '.')"),
    ),
    Hostile(
        "write_an_unknown_form",
        "no_literal.*",
        body('os.write(3, b\'{"value": ["exec", "1"]}\')\nos._exit(0)'),
    ),
    Hostile("write_rubbish", "no_literal.*", body("os.write(3, bytes(range(256)))\nos._exit(0)")),
    Hostile(
        "write_deep_rubbish",
        "no_literal.*",
        body("os.write(3, b'{\"value\": ' + b'[' * 500000)\nos._exit(0)"),
    ),
    Hostile(
        "write_keys_with_one_hash",
        "no_literal.*",
        body(
            """
keys = ','.join(str(n * (2**61 - 1)) for n in range(30000))
os.write(3, ('{"value": ["set",' + keys + ']}').encode())
os._exit(0)
"""
        ),
    ),
    Hostile(
        "write_control_tokens",
        r"error: <\\\|im_end\|> a b",
        body("""
os.write(3, b'{"error": "error: <|im_end|> a\\\\nb"}')
os._exit(0)
"""),
    ),
    Hostile(
        "flood_the_result",
        "too_large.*",
        body("""
try:
    while True: os.write(3, bytes(1 << 20))
finally:
    os._exit(0)
"""),
    ),
    Hostile("return_a_flood", "too_large.*", body("return 'x' * (50 << 20)")),
    Hostile("return_many_items", "too_large.*", body("return list(range(10**6))")),
    Hostile(
        "return_a_circle",
        "no_literal.*",
        body("""
a = []
a.append(a)
return a
"""),
    ),
    Hostile(
        "return_what_doubles",
        "too_large.*",
        body("""
a = [1]
for _ in range(40): a = [a, a]
return a
"""),
    ),
    Hostile(
        "an_error_without_a_text",
        "(exit|TypeError).*",
        """
class E(Exception):
    def __str__(self): return 1
def f(): raise E
""",
    ),
    Hostile(
        "an_error_with_a_long_text", "ValueError: x{400,}.*", body("raise ValueError('x' * 10**7)")
    ),
    Hostile("raise_base_exception", "BaseException: stop.*", body("raise BaseException('stop')")),
    Hostile("no_function", "NameError: the program defines no function 'f'.*", "g = 1"),
    Hostile(
        "read_what_another_program_left",
        "value False",
        body(
            """
import gc
frame, seen = sys._getframe(), []
while frame:
    seen.append(repr(frame.f_locals))
    frame = frame.f_back
kinds = (dict, list, tuple)
seen += [repr(each) for each in gc.get_objects() if isinstance(each, kinds)][:5000]
return any("rekram-detcepxe"[::-1] in text for text in seen)
"""
        ),
    ),
    Hostile("import_the_package", "ModuleNotFoundError.*", body("import aflowgym")),
    Hostile("import_the_other_packages", "ModuleNotFoundError.*", body("import gymnasium")),
    Hostile(
        "preload_code_for_others",
        "(PermissionError|FileNotFoundError|OSError).*",
        body("open(os.path.join(os.path.dirname(os.__file__), 'sitecustomize.py'), 'w')"),
    ),
]
#: Name, number on x86_64: each is called with the arguments that are given, else with zeros.
RAW = [
    ("fork", 57), ("vfork", 58), ("clone", 56, 17), ("clone3", 435), ("execve", 59),
    ("execveat", 322), ("ptrace", 101), ("process_vm_readv", 310), ("process_vm_writev", 311),
    ("pidfd_open", 434, 1), ("pidfd_getfd", 438), ("pidfd_send_signal", 424), ("tgkill", 234),
    ("tkill", 200),
    ("rt_sigqueueinfo", 129), ("kcmp", 312), ("unshare", 272, 0x10000000), ("setns", 308),
    ("mount", 165), ("pivot_root", 155), ("open_tree", 428), ("fsopen", 430), ("chroot", 161),
    ("shmget", 29, 0, 4096, 0o1600), ("semget", 64), ("msgget", 68), ("mq_open", 240),
    ("io_uring_setup", 425, 8), ("io_uring_enter", 426), ("bpf", 321), ("perf_event_open", 298),
    ("userfaultfd", 323), ("keyctl", 250), ("add_key", 248), ("memfd_create", 319),
    ("memfd_secret", 447), ("socket", 41, 2, 1), ("socketpair", 53, 1, 1), ("prctl", 157, 1, 0),
    ("arch_prctl", 158), ("personality", 135), ("setrlimit", 160), ("sched_setscheduler", 144),
    ("capset", 126), ("setuid", 105), ("seccomp", 317), ("landlock_create_ruleset", 444),
    ("name_to_handle_at", 303), ("open_by_handle_at", 304), ("openat2", 437), ("chmod", 90),
    ("fchmodat2", 452), ("utimensat", 280), ("setxattr", 188), ("setxattrat", 463), ("mknod", 133),
    ("symlink", 88), ("link", 86), ("mkdir", 83), ("creat", 85), ("truncate", 76), ("sync", 162),
    ("inotify_init", 253), ("fanotify_init", 300), ("timer_create", 222), ("eventfd2", 290),
    ("epoll_create1", 291), ("signalfd4", 289), ("splice", 275), ("vmsplice", 278), ("reboot", 169),
    ("init_module", 175), ("kexec_load", 246), ("iopl", 172), ("modify_ldt", 154), ("umount2", 166),
    ("process_madvise", 440), ("mbind", 237), ("move_pages", 279), ("unknown", 9999),
]  # fmt: skip

#: Machine code for `mov eax, 20; int 0x80; ret`: getpid by the calls of 32-bit programs.
I386 = """
import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("b814000000cd80c3"))
return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""
OTHER_ABI = [
    Hostile("x32_call", "crash: SIGSYS", body("return ctypes.CDLL(None).syscall(0x40000000 + 39)")),
    Hostile("i386_call", "crash: SIGSYS", body(I386)),
]
KINDS = {
    "files": FILES,
    "proc": PROC,
    "network": NETWORK,
    "processes": PROCESSES,
    "resources": RESOURCES,
    "results": RESULTS,
    "descriptors": DESCRIPTORS,
    "arguments of system calls": ARGUMENTS,
    "disk": DISK,
    "memory and time": MEMORIES,
    "crashes and ends": CRASHES,
    "texts": TEXTS,
    "numbers": NUMBERS,
    "containers": CONTAINERS,
    "objects": OBJECTS,
    "searches for what is expected": SEARCHES,
    "forged results": REPLACED,
    "surroundings": SURROUNDINGS,
}
if platform.machine() == "x86_64":
    KINDS["system calls"] = [raw(*each) for each in (*RAW, *RAW_OF_KERNEL)]
    KINDS["other calling conventions"] = OTHER_ABI
PROGRAMS = [program for kind in KINDS.values() for program in kind]
#: These take a second of computing, or wait until the clock.
SLOW = frozenset(
    [
        "a_power",
        "a_factorial",
        "a_product_of_ranges",
        "a_zip_of_zeros",
        "a_deque",
        "a_dict_of_texts",
        "many_mappings",
        "a_pipe_that_nobody_reads",
        "a_generator_without_an_end",
        "a_sort_with_a_slow_key",
        "a_fraction_that_grows",
        "a_regular_expression_of_alternatives",
        "hashes_that_collide",
        "a_deep_call_in_c",
        "an_exception_in_each_exception",
        "wait_for_ever",
        "wait_on_a_lock",
        "a_number_that_never_ends",
        "an_error_whose_text_never_ends",
        "a_class_that_never_answers",
        "everything_that_can_be_imported",
        "ten_million_items",
        "ten_million_keys",
    ]
)
#: Of each kind of wall a handful, none of which takes a tenth of a second: for every run.
FEW = frozenset(
    [
        *("read_a_secret", "write_outside", "symlink", "read_the_task_files"),
        "write_beside_its_folder",
        *("proc_parent_memory", "inherited_descriptors", "read_the_first_environment"),
        *("connect", "unix_socket"),
        *("fork", "exec", "signal_the_parent", "thread"),
        *("allocate", "a_large_file", "crash", "exit_as_if_the_machine_failed"),
        *("equal_to_everything", "write_an_outcome_of_the_machine", "return_what_doubles"),
        *("reopen_the_result", "descriptors_of_the_worker"),
        *("a_whiteout", "a_file_without_a_name"),
        *("a_sparse_file_beyond_the_limit", "a_list_times", "write_to_a_wild_address"),
        *("return_a_surrogate", "many_digits", "a_dict_of_itself", "a_repr_that_raises"),
        *("arguments_of_the_caller", "import_the_judge"),
        *("replace_dumps", "write_two_errors", "close_the_result"),
        *("fetch_a_page", "an_event_loop"),
        *("raw_ptrace", "raw_io_uring_setup", "x32_call"),
    ]
)
#: Of each kind those that differ most: for every change.
GATE = FEW | frozenset(
    [
        *("list_the_parent_folder", "empty_a_file_by_reading_it", "make_a_device", "leave_a_file"),
        *("proc_own_environ", "read_the_environment", "read_a_device"),
        *("netlink", "look_up_a_name"),
        *("fork_bomb", "daemon", "signal_everybody", "limit_another", "become_root"),
        *("open_files", "sleep", "busy_loop"),
        *("loop_that_catches_everything", "deep_recursion", "flood_the_output"),
        *("a_list_equal_to_everything", "write_code_as_a_value", "flood_the_result"),
        *("write_keys_with_one_hash", "read_what_another_program_left"),
        *("look_into_everybody", "follow_a_race_of_names", "a_folder_as_a_handle"),
        *("a_high_half_of_an_argument", "run_the_result"),
        *("removed_files_that_are_mapped",),
        *("the_heap_by_sbrk", "many_pipes", "a_pipe_that_nobody_reads"),
        *("a_fatal_error_of_python", "an_alarm_that_nobody_catches", "a_pickle_that_runs"),
        *("a_source_with_a_null", "raise_many_lines", "not_a_number", "a_bool_that_is_no_bool"),
        *("a_hundred_thousand_levels", "a_dict_that_lies", "an_error_whose_text_exits"),
        *("memory_that_was_freed", "objects_of_the_collector"),
        *("end_within_the_write", "in_a_destructor", "a_subclass_check_that_lies"),
        *("read_the_input", "a_library_of_its_own"),
        *("raw_bpf", "raw_clone3", "raw_unshare", "raw_unknown", "raw_socket_packet", "i386_call"),
    ]
)
