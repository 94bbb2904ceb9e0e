"""Programs that use more than they may, in ways beside a busy loop and a large list.

Each kind of store has a limit of its own, and the way around it is often another kind: a file that
was removed and is still mapped, a pipe that nobody reads, an object that lives in the C library.
"""

from tests.aflowgym.sandbox.hostile_case import REFUSED, Hostile, body

MEMORY = "(memory|MemoryError|OverflowError|OSError: .*Cannot allocate).*"
DISK = [
    Hostile(
        "removed_files_that_are_mapped",
        REFUSED,
        body("""
import mmap, time
kept = []
for n in range(10):
    file = os.open('a', os.O_CREAT | os.O_RDWR)
    os.write(file, bytes(7 << 20))
    kept.append(ctypes.CDLL(None).mmap(None, 4096, 1, 1, file, 0))
    os.close(file)
    os.unlink('a')
time.sleep(3)
return len(kept)
"""),
    ),
    Hostile(
        "temporary_files_are_counted",
        "FileNotFoundError: .*No usable temporary.*",
        body("""
import tempfile, time
kept = []
for n in range(10):
    kept.append(tempfile.TemporaryFile())
    kept[-1].write(bytes(7 << 20))
time.sleep(3)
return len(kept)
"""),
    ),
    Hostile(
        "a_sparse_file_beyond_the_limit",
        REFUSED,
        body("open('a', 'wb').truncate(1 << 40)"),
    ),
    Hostile(
        "a_name_of_no_encoding",
        REFUSED,
        body("""
os.close(os.open(b'\\xff\\xfe\\n', os.O_CREAT | os.O_WRONLY))
return len(os.listdir('.'))
"""),
    ),
    Hostile(
        "a_name_of_a_surrogate",
        "(UnicodeEncodeError|OSError).*|value None",
        body("""
open('\\ud800', 'w').close()
"""),
    ),
    Hostile(
        "an_attribute_as_a_store",
        REFUSED,
        body("""
open('a', 'w').close()
os.setxattr('a', 'user.kept', bytes(60000))
"""),
    ),
    Hostile(
        "many_hard_links",
        REFUSED,
        body("""
open('a', 'w').close()
for n in range(100): os.link('a', str(n))
"""),
    ),
    Hostile(
        "a_flood_of_the_result_by_truncation",
        REFUSED,
        body("""
os.ftruncate(3, 8 << 20)
os._exit(0)
"""),
    ),
    Hostile(
        "a_result_beyond_the_limit",
        REFUSED,
        body("""
os.ftruncate(3, 1 << 40)
"""),
    ),
    Hostile(
        "copy_into_the_result",
        "(too_large|no_literal|OSError|exit).*",
        body("""
zero = os.open('/dev/zero', os.O_RDONLY)
try:
    while os.sendfile(3, zero, None, 1 << 20): pass
finally: os._exit(0)
"""),
    ),
]
MEMORIES = [
    Hostile("a_power", "timeout|" + MEMORY, body("return 7 ** 10 ** 9")),
    Hostile("a_shift", MEMORY, body("return 1 << (1 << 40)")),
    Hostile("a_factorial", "timeout|" + MEMORY, body("import math\nreturn math.factorial(10**8)")),
    Hostile("a_width", MEMORY, body("return '%*d' % (2**31 - 1, 1)")),
    Hostile("a_format_width", "(ValueError|memory|MemoryError).*", body("return f'{1:{10**12}}'")),
    Hostile("a_list_times", MEMORY, body("return [0] * 10**12")),
    Hostile("a_text_times", MEMORY, body("return 'x' * 10**13")),
    Hostile(
        "a_product_of_ranges",
        "timeout|" + MEMORY,
        body("""
import itertools
return list(itertools.product(range(1000), repeat=4))
"""),
    ),
    Hostile("a_join", MEMORY, body("return ''.join(['x' * 10**6] * 10**6)")),
    Hostile("replace_into_much", MEMORY, body("return ('x' * 10**5).replace('x', 'y' * 10**6)")),
    Hostile("expand_tabs", MEMORY, body("return '\\t'.expandtabs(2**31 - 1)")),
    Hostile(
        "a_zip_of_zeros",
        "(memory|timeout|MemoryError|error|OverflowError|value).*",
        body("""
import zlib
packed = zlib.compress(bytes(1 << 27))
return len(zlib.decompress(packed * 1)) > len(zlib.decompress(packed) * 9)
"""),
    ),
    Hostile(
        "a_deque",
        "timeout|" + MEMORY,
        body("""
import collections
kept = collections.deque()
while True: kept.append(bytearray(1 << 20))
"""),
    ),
    Hostile(
        "a_dict_of_texts",
        "timeout|" + MEMORY,
        body("""
kept = {}
while True: kept[len(kept)] = str(len(kept)) * 10**5
"""),
    ),
    Hostile(
        "memory_of_the_c_library",
        "timeout|value True",
        body("""
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
got = [libc.malloc(ctypes.c_size_t(1 << 26)) for _ in range(64)]
return None in got
"""),
    ),
    Hostile(
        "many_mappings",
        "(OSError|memory|timeout).*",
        body("""
import mmap
kept = []
while True: kept.append(mmap.mmap(-1, 4096))
"""),
    ),
    Hostile(
        "the_heap_by_sbrk",
        "value True",
        body("""
libc = ctypes.CDLL(None)
libc.sbrk.restype = ctypes.c_long
return libc.sbrk(ctypes.c_long(3 << 30)) == -1
"""),
    ),
    Hostile(
        "a_large_buffer_type",
        "(memory|MemoryError|OverflowError|ValueError).*",
        body("""
(ctypes.c_char * (1 << 40))()
"""),
    ),
    Hostile(
        "many_pipes",
        "OSError: .*Too many open files.*",
        body("""
kept = []
while True: kept.append(os.pipe())
"""),
    ),
    Hostile(
        "a_pipe_that_nobody_reads",
        "timeout",
        body("""
r, w = os.pipe()
while True: os.write(w, bytes(1 << 16))
"""),
    ),
    Hostile(
        "a_generator_without_an_end",
        "timeout|" + MEMORY,
        body("""
import itertools
return sum(1 for _ in itertools.count())
"""),
    ),
    Hostile(
        "a_sort_with_a_slow_key",
        "timeout",
        body("""
def slow(n):
    while True: pass
return sorted(range(9), key=slow)
"""),
    ),
    Hostile(
        "a_decimal_with_much_precision",
        "timeout|" + MEMORY,
        body("""
import decimal
decimal.getcontext().prec = 10**9
return decimal.Decimal(1) / 3
"""),
    ),
    Hostile(
        "a_fraction_that_grows",
        "timeout|" + MEMORY,
        body("""
from fractions import Fraction
x = Fraction(1, 3)
while True: x = x * x + 1
"""),
    ),
    Hostile(
        "a_regular_expression_of_alternatives",
        "timeout",
        body("""
import re
return re.match(r'(?:a|aa|aaa)+$', 'a' * 60 + 'b')
"""),
    ),
    Hostile(
        "hashes_that_collide",
        "timeout|value .*",
        body("""
class K:
    def __init__(self, n): self.n = n
    def __hash__(self): return 1
    def __eq__(self, o): return self.n == o.n
return len({K(n) for n in range(10**5)})
"""),
    ),
]
CRASHES = [
    Hostile(
        "code_that_is_none",
        "(crash: .*|SystemError.*|timeout|exit.*|memory|value.*)",
        body("""
code = f.__code__.replace(co_code=bytes(range(256)), co_stacksize=1)
exec(code)
"""),
    ),
    Hostile(
        "a_code_with_a_short_stack",
        "(crash: .*|SystemError.*|timeout|exit.*|memory|value.*)",
        body("""
g = lambda: [1, [2, [3, [4, [5, [6]]]]]]
g.__code__ = g.__code__.replace(co_stacksize=0)
return g()
"""),
    ),
    Hostile(
        "marshalled_rubbish",
        "(ValueError|EOFError|TypeError|crash).*",
        body("""
import marshal
for n in range(256):
    try: marshal.loads(bytes([n, 255, 255, 255, 127]))
    except (ValueError, EOFError, TypeError, MemoryError): pass
marshal.loads(b'c' + bytes(200))
"""),
    ),
    Hostile(
        "a_pickle_that_runs",
        "(PermissionError|OSError).*|value (-1|32512|256)",
        body("""
import pickle
return pickle.loads(b'cos\\nsystem\\n(S"true"\\ntR.')
"""),
    ),
    Hostile(
        "a_pickle_that_grows",
        "(memory|UnpicklingError|MemoryError|EOFError|OverflowError).*",
        body("""
import pickle
pickle.loads(b'\\x80\\x05\\x8e' + (1 << 40).to_bytes(8, 'little'))
"""),
    ),
    Hostile(
        "write_to_a_wild_address", "crash: SIG(SEGV|BUS)", body("ctypes.memset(1 << 40, 0, 8)")
    ),
    Hostile(
        "free_what_is_not_its_own",
        "crash: SIG(ABRT|SEGV)",
        body("""
ctypes.CDLL(None).free(ctypes.c_void_p(ctypes.addressof(ctypes.c_long(5)) + 8))
"""),
    ),
    Hostile(
        "overwrite_an_integer",
        "(value|crash|SystemError|timeout|exit|[A-Z]).*",
        body("""
ctypes.memset(id(7), 1, 24)
return 7 + 7
"""),
    ),
    Hostile(
        "overwrite_none",
        "(value|crash|exit|timeout|memory|[A-Z]).*",
        body("""
ctypes.memset(id(None), 0, 16)
return [None] * 3
"""),
    ),
    Hostile(
        "drop_the_references_of_none",
        "(value|crash|exit|timeout|memory|[A-Z]).*",
        body("""
drop = ctypes.pythonapi.Py_DecRef
for _ in range(100000): drop(ctypes.py_object(object))
return 1
"""),
    ),
    Hostile(
        "a_deep_repr",
        "(RecursionError|memory|timeout|crash: SIGSEGV|no_literal).*",
        body("""
a = []
for _ in range(100000): a = [a]
return repr(a)
"""),
    ),
    Hostile(
        "a_deep_comparison",
        "(RecursionError|memory|crash: SIGSEGV).*",
        body("""
a, b = [], []
for _ in range(100000): a, b = [a], [b]
return a == b
"""),
    ),
    Hostile(
        "a_deep_chain_of_iterators",
        "(value|crash: SIGSEGV|memory|RecursionError).*",
        body("""
it = iter([1])
for _ in range(300000): it = filter(None, it)
return next(it)
"""),
    ),
    Hostile(
        "a_deep_call_in_c",
        "(RecursionError|crash: SIGSEGV|memory).*",
        body("""
sys.setrecursionlimit(10**8)
import functools
g = lambda: 1
for _ in range(200000): g = functools.partial(g.__call__)
class A:
    def __getattr__(self, name): return getattr(self, name + 'x')
return A().a
"""),
    ),
    Hostile(
        "an_exception_in_each_exception",
        "(RecursionError|timeout|memory|crash|exit).*",
        body("""
def g():
    try: g()
    finally: g()
g()
"""),
    ),
    Hostile(
        "fault_handler",
        REFUSED,
        body("""
import faulthandler
faulthandler.enable(open('trace', 'w'))
faulthandler._sigsegv()
"""),
    ),
    Hostile(
        "a_stack_of_its_own_signals",
        "crash: SIGSEGV|timeout",
        body("""
import signal
signal.signal(signal.SIGSEGV, signal.SIG_IGN)
ctypes.string_at(0)
"""),
    ),
    Hostile(
        "illegal_instruction_handler",
        "crash: SIG(ILL|SEGV|BUS|TRAP)",
        body("""
import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(b'\\x0f\\x0b' if os.uname().machine == 'x86_64' else bytes(4))
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""),
    ),
    Hostile(
        "divide_in_machine_code",
        "crash: SIG(FPE|ILL|SEGV)|value None",
        body("""
import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(b'\\x31\\xc9\\xf7\\xf1\\xc3' if os.uname().machine == 'x86_64' else bytes(4))
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""),
    ),
    *(
        Hostile(f"exit_{status}", "exit: .*", body(f"os._exit({status})"))
        for status in (1, 2, 42, 126, 137, 255)
    ),
    Hostile(
        "a_fatal_error_of_python",
        "crash: SIG(ABRT|SEGV)",
        body("""
ctypes.pythonapi.Py_FatalError(b'enough')
"""),
    ),
    Hostile(
        "end_python_itself",
        "(exit|value|crash|no_literal).*",
        body("""
ctypes.pythonapi.Py_Exit(3)
"""),
    ),
    Hostile(
        "an_alarm_that_nobody_catches",
        "crash: SIGALRM",
        body("""
import signal, time
signal.setitimer(signal.ITIMER_REAL, 0.01)
time.sleep(3)
"""),
    ),
    Hostile(
        "a_timer_of_computing",
        "crash: SIG(PROF|VTALRM)",
        body("""
import signal
signal.setitimer(signal.ITIMER_VIRTUAL, 0.01)
while True: pass
"""),
    ),
    Hostile(
        "a_broken_pipe",
        "BrokenPipeError.*|crash: SIGPIPE",
        body("""
import signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
r, w = os.pipe()
os.close(r)
os.write(w, b'x')
"""),
    ),
    Hostile(
        "raise_a_signal",
        "PermissionError.*|OSError.*|value.*",
        body("""
import signal
signal.raise_signal(signal.SIGKILL)
"""),
    ),
    Hostile(
        "stop_itself",
        "PermissionError.*",
        body("import signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    ),
    Hostile("wait_for_ever", "timeout", body("import signal\nsignal.pause()")),
    Hostile(
        "wait_on_a_lock",
        "timeout",
        body("""
import threading
lock = threading.Lock()
lock.acquire(); lock.acquire()
"""),
    ),
]
