"""Programs that go at the kernel: calls beside the list, arguments beside the rules, descriptors.

`RAW_OF_KERNEL` has calls that are refused whatever their arguments are; x86_64 only.
"""

import platform

from tests.aflowgym.sandbox.hostile_case import HIDDEN, REFUSED, Hostile, body

#: Name, number on x86_64, arguments (zeros if none).
RAW_OF_KERNEL = [
    ("kill_everybody", 62, -1, 9), ("rt_tgsigqueueinfo", 297), ("prctl_dumpable", 157, 4, 1),
    ("prctl_seccomp", 157, 22, 2), ("prctl_memory_map", 157, 35, 1), ("prctl_timer_slack", 157, 29),
    ("prctl_tracer", 157, 0x59616D61, -1), ("prctl_subreaper", 157, 36, 1),
    ("prctl_keep_capabilities", 157, 8, 1), ("prctl_ambient", 157, 47, 2),
    ("prctl_speculation", 157, 53), ("prctl_user_dispatch", 157, 59, 1),
    ("seccomp_listener", 317, 1, 8), ("seccomp_strict", 317, 0), ("wait4", 61, -1),
    ("waitid", 247), ("setpgid", 109), ("setsid", 112), ("sched_setparam", 142),
    ("sched_setaffinity", 203), ("sched_setattr", 314), ("ioprio_set", 251), ("setpriority", 141),
    ("setreuid", 113), ("setresuid", 117), ("setfsuid", 122), ("setgid", 106), ("setgroups", 116),
    ("capget", 125), ("set_thread_area", 205), ("ioperm", 173), ("pkey_alloc", 330),
    ("membarrier", 324), ("rseq", 334), ("set_robust_list", 273), ("mlock", 149),
    ("mlockall", 151, 3), ("mincore", 27), ("msync", 26), ("remap_file_pages", 216),
    ("set_mempolicy", 238), ("migrate_pages", 256), ("process_mrelease", 448),
    ("map_shadow_stack", 453), ("mseal", 462), ("cachestat", 451), ("futex_waitv", 449),
    ("shmat", 30), ("shmctl", 31), ("semop", 65), ("semctl", 66), ("msgsnd", 69), ("msgrcv", 70),
    ("mq_unlink", 241), ("mq_timedsend", 242), ("mq_notify", 244), ("bind", 49), ("connect", 42),
    ("listen", 50), ("accept4", 288), ("sendto", 44), ("recvfrom", 45), ("sendmsg", 46),
    ("recvmsg", 47), ("sendmmsg", 307), ("setsockopt", 54), ("socket_packet", 41, 17, 3),
    ("socket_vsock", 41, 40, 1), ("socket_crypto", 41, 38, 5), ("socket_bluetooth", 41, 31, 3),
    ("mount_setattr", 442), ("move_mount", 429), ("fsconfig", 431), ("fsmount", 432),
    ("fspick", 433), ("open_tree_attr", 467), ("statmount", 457), ("listmount", 458),
    ("quotactl", 179), ("quotactl_fd", 443), ("swapon", 167), ("acct", 163), ("syslog", 103),
    ("sethostname", 170), ("settimeofday", 164), ("clock_settime", 227), ("adjtimex", 159),
    ("delete_module", 176), ("finit_module", 313), ("kexec_file_load", 320), ("vhangup", 153),
    ("lsm_set_self_attr", 460), ("landlock_restrict_self", 446), ("statfs", 137), ("sysfs", 139),
    ("io_setup", 206), ("io_submit", 209), ("io_uring_register", 427), ("timerfd_create", 283),
    ("timer_settime", 223), ("inotify_add_watch", 254), ("fanotify_mark", 301),
    ("epoll_create", 213), ("eventfd", 284), ("signalfd", 282), ("tee", 276), ("preadv", 295),
    ("pwritev2", 328), ("copy_file_range", 326), ("fallocate", 285), ("sync_file_range", 277),
    ("syncfs", 306), ("flock", 73), ("readahead", 187), ("chdir", 80), ("fchdir", 81),
    ("mkdirat", 258), ("mknodat", 259), ("symlinkat", 266), ("linkat", 265), ("rmdir", 84),
    ("fchmod", 91), ("fchmodat", 268), ("fchown", 93), ("lchown", 94), ("fchownat", 260),
    ("utime", 132), ("utimes", 235), ("futimesat", 261), ("getxattr", 191), ("listxattr", 194),
    ("removexattr", 197), ("fsetxattr", 190), ("uselib", 134), ("get_robust_list", 274),
    ("clone_of_a_user", 56, 0x10000011), ("clone_with_a_pidfd", 56, 0x1011),
    ("unshare_mounts", 272, 0x20000), ("unshare_network", 272, 0x40000000),
]  # fmt: skip


def raw(name: str, number: int, *arguments: int) -> Hostile:
    """A system call by its number; it is refused, or said not to be there."""
    words = ", ".join(f"ctypes.c_long({n})" for n in (number, *(*arguments, 0, 0, 0, 0, 0)[:5]))
    source = body(
        f"libc = ctypes.CDLL(None, use_errno=True)\n"
        f"return libc.syscall({words}), ctypes.get_errno()"
    )
    return Hostile(f"raw_{name}", r"value \(-1, (1|38)\)", source)


LIBC = """
libc = ctypes.CDLL(None, use_errno=True)
def told(result): return result if result >= 0 else -ctypes.get_errno()
"""


def libc(name: str, gets: str, text: str) -> Hostile:
    """A program with the C library at hand; `told` gives a result, or the error below zero."""
    return Hostile(name, gets, body(LIBC + text))


DESCRIPTORS = [
    Hostile("reopen_the_result", REFUSED, body("open('/dev/fd/3', 'wb')")),
    Hostile("reopen_the_result_to_read", REFUSED, body("open('/dev/fd/3', 'rb')")),
    Hostile("reopen_the_result_by_proc", REFUSED, body("open('/proc/self/fd/3', 'r+b')")),
    Hostile(
        "reopen_the_result_by_a_thread",
        REFUSED,
        body("open(f'/proc/thread-self/fd/3', 'r+b')"),
    ),
    Hostile(
        "reopen_a_copy_of_the_result",
        REFUSED,
        body("os.dup2(3, 20)\nopen(f'/proc/{os.getpid()}/fd/20', 'r+b')"),
    ),
    Hostile("seal_the_result", REFUSED, body("import fcntl\nfcntl.fcntl(3, 1033, 2)")),
    Hostile("open_the_result_to_all", REFUSED, body("os.fchmod(3, 0o777)")),
    Hostile(
        "descriptors_of_the_worker",
        f"{HIDDEN}|ProcessLookupError.*",
        body("open(f'/proc/{os.getppid()}/fd/3', 'r+b')"),
    ),
    Hostile(
        "descriptors_of_the_parent",
        f"{HIDDEN}|ProcessLookupError.*",
        body("open('/proc/PARENT/fd/1', 'wb').write(b'forged')"),
    ),
    Hostile(
        "look_into_everybody",
        r"value \[\]",
        body("""
found = []
me = os.getpid()
for pid in (1, *range(max(2, me - 400), me + 400)):
    if pid == me: continue
    for name in ('environ', 'mem', 'maps', 'cmdline', 'fd/3'):
        try:
            os.close(os.open(f'/proc/{pid}/{name}', os.O_RDONLY))
        except OSError:
            continue
        found.append((pid, name))
return found
"""),
    ),
    Hostile(
        "link_of_another_childs_result",
        r"value \[\]",
        body("""
found = []
me = os.getpid()
for pid in (1, *range(max(2, me - 400), me + 400)):
    if pid != me:
        try:
            found.append(os.readlink(f'/proc/{pid}/fd/3'))
        except OSError:
            continue
return found
"""),
    ),
    Hostile("write_own_memory_by_proc", REFUSED, body("open('/proc/self/mem', 'r+b')")),
    Hostile("change_own_comm", REFUSED, body("open('/proc/self/comm', 'w').write('worker')")),
    Hostile("shield_from_oom", REFUSED, body("open('/proc/self/oom_score_adj', 'w').write('0')")),
    Hostile(
        "change_the_dump_filter",
        REFUSED,
        body("open('/proc/self/coredump_filter', 'w').write('ff')"),
    ),
    Hostile("map_users", REFUSED, body("open('/proc/self/uid_map', 'w').write('0 0 1')")),
    Hostile(
        "change_a_setting_of_the_kernel",
        f"{REFUSED}|FileNotFoundError.*|OSError.*",
        body("open('/proc/sys/kernel/core_pattern', 'w').write('|x')"),
    ),
    Hostile("ask_the_kernel_to_reboot", HIDDEN, body("open('/proc/sysrq-trigger', 'w')")),
    Hostile("read_kernel_symbols", HIDDEN, body("return open('/proc/kallsyms').read(9)")),
    Hostile("read_a_kernel_log", HIDDEN, body("return os.open('/dev/kmsg', os.O_RDONLY)")),
    Hostile("open_a_disk", HIDDEN, body("return os.open('/dev/sda', os.O_RDONLY)")),
    Hostile("open_fuse", HIDDEN, body("return os.open('/dev/fuse', os.O_RDWR)")),
    Hostile("open_kvm", HIDDEN, body("return os.open('/dev/kvm', os.O_RDWR)")),
    Hostile("a_terminal", "(PermissionError|OSError|FileNotFoundError).*", body("os.openpty()")),
    Hostile(
        "shared_memory",
        "(PermissionError|OSError|FileNotFoundError).*",
        body("""
from multiprocessing import shared_memory
shared_memory.SharedMemory(name='met', create=True, size=10)
"""),
    ),
    Hostile(
        "a_shared_semaphore",
        "(PermissionError|OSError|FileNotFoundError|ImportError|AttributeError).*",
        body("import multiprocessing\nmultiprocessing.get_context('spawn').Semaphore()"),
    ),
    Hostile("read_other_calls", HIDDEN, body("return open('../beside').read()")),
    Hostile("list_temporary_folders", REFUSED, body("return os.listdir('/tmp')")),
    Hostile("read_ssh_keys", HIDDEN, body("return open('/etc/ssh/ssh_host_rsa_key').read()")),
    Hostile("read_the_shadow", HIDDEN, body("return open('/etc/shadow').read()")),
    Hostile("read_the_hosts_name", HIDDEN, body("return open('/etc/hostname').read()")),
    Hostile(
        "read_site_packages",
        HIDDEN,
        body("""
import sysconfig
return os.listdir(sysconfig.get_path('purelib'))
"""),
    ),
    Hostile("read_the_sandbox", HIDDEN, body("return open('FOLDER').read()")),
    Hostile(
        "follow_a_path_out",
        REFUSED,
        body("return os.listdir('/dev/fd/../../..')"),
    ),
    Hostile(
        "a_folder_as_a_handle",
        REFUSED,
        body("""
root = os.open('/', os.O_PATH)
os.open('etc/passwd', os.O_RDONLY, dir_fd=root)
"""),
    ),
    Hostile(
        "reopen_a_path_handle",
        REFUSED,
        body("""
secret = os.open('SECRET', os.O_PATH)
return open(f'/proc/self/fd/{secret}').read()
"""),
    ),
    Hostile(
        "move_into_a_handle",
        f"{REFUSED}|OSError.*",
        body("""
open('a', 'w').close()
root = os.open('/tmp', os.O_PATH)
os.rename('a', 'moved', dst_dir_fd=root)
"""),
    ),
    Hostile(
        "follow_a_race_of_names",
        REFUSED,
        body("""
found = []
open('a', 'w').write('mine')
for n in range(2000):
    os.rename('a', 'b')
    try:
        found.append(open('../own/b/../../secret').read())
    except OSError:
        pass
    os.rename('b', 'a')
return found
"""),
    ),
]
ARGUMENTS = [
    libc(
        "a_whiteout",
        REFUSED,
        """
open('a', 'w').close()
return told(libc.renameat2(-100, b'a', -100, b'b', 4)), os.path.exists('b')
""",
    ),
    libc(
        "a_whiteout_and_an_exchange",
        "value -1",
        "return told(libc.renameat2(-100, b'a', -100, b'b', 6))",
    ),
    libc("a_pipe_of_notices", "value -1", "return told(libc.fcntl(3, 1026, 0x80000001))"),
    libc("a_lease", "value -1", "return told(libc.fcntl(3, 1024, 1))"),
    libc("a_lock", "value -1", "return told(libc.fcntl(3, 6, ctypes.create_string_buffer(64)))"),
    libc("an_owner_by_struct", "value -1", "return told(libc.fcntl(3, 15, b'\\0' * 8))"),
    libc("a_signal_for_input", "value -1", "return told(libc.fcntl(3, 10, 9))"),
    libc("copy_a_range_of_a_file", "value -25", "return told(libc.ioctl(3, 0x40049409, 0))"),
    libc(
        "asynchronous_by_ioctl", "value -25", "return told(libc.ioctl(3, 0x5452, b'\\1\\0\\0\\0'))"
    ),
    libc("steal_the_terminal", "value -25", "return told(libc.ioctl(0, 0x540E, 1))"),
    libc(
        "a_high_half_of_an_argument",
        "value -1",
        "return told(libc.fcntl(3, ctypes.c_ulong((1 << 32) + 1033), 0))",
    ),
    libc(
        "a_file_without_a_name",
        r"value \[-95, -95, -95\]",
        """
return [told(libc.open(b'.', flags, 0o600)) for flags in (0o20200002, 0o20200001, 0o20000002)]
""",
    ),
    libc(
        "set_another_limit",
        "value -1",
        "return told(libc.prlimit(0, 9, ctypes.create_string_buffer(16), None))",
    ),
    libc(
        "run_a_memory_of_its_own",
        "value -1",
        """
return told(libc.execveat(3, b'', None, None, 0x1000)) if hasattr(libc, 'execveat') else -1
""",
    ),
    libc(
        "run_the_result",
        "no_literal.*",
        "os.write(3, b'#!/bin/sh\\n')\nos.execve(3, ['x'], {})",
    ),
    libc("follow_signals_of_others", "value -1", "return told(libc.signalfd(-1, None, 0))"),
    libc(
        "fork_by_the_c_library",
        r"value \[-1, -1\]",
        "return [told(libc.fork()), told(libc.daemon(1, 1))]",
    ),
    libc("run_by_the_c_library", "value (-1|32512|256)", "return libc.system(b'true')"),
    libc(
        "open_by_the_c_library",
        "value True",
        "libc.popen.restype = ctypes.c_void_p\nreturn libc.popen(b'true', b'r') is None",
    ),
    libc(
        "a_thread_of_the_c_library",
        "value 1",
        "return libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.abort, None)",
    ),
    libc("wait_for_others", "value -1", "return told(libc.wait(None))"),
    libc("raise_its_priority", "value -1", "return told(libc.nice(-20))"),
    libc(
        "a_key_of_the_session",
        "value -1",
        "return told(libc.syscall(250, 0, -3, 1))"
        if platform.machine() == "x86_64"
        else "return told(libc.syscall(219, 0, -3, 1))",
    ),
]
