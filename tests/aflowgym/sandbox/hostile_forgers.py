"""Programs that would be judged right without being so.

They look for what is expected in frames, in memory and in files, replace what the sandbox itself
uses, and write results of their own. The marker of the driver stands for a test's expected value:
another program of the same workers has it, as earlier calls have had theirs.
"""

from tests.aflowgym.sandbox.hostile_case import HIDDEN, REFUSED, Hostile, body

SEARCHES = [
    Hostile(
        "arguments_of_the_caller",
        "value False",
        body("""
frame, found = sys._getframe(), []
while frame:
    found += [repr(each)[:10000] for each in frame.f_locals.values()]
    frame = frame.f_back
return any('rekram-detcepxe'[::-1] in text for text in found)
"""),
    ),
    Hostile(
        "names_of_the_callers",
        r"value True",
        body("""
frame, found = sys._getframe(), set()
while frame:
    found |= set(frame.f_locals)
    frame = frame.f_back
return not found & {'expected', 'tests', 'outcome', 'gold', 'tolerance'}
"""),
    ),
    Hostile(
        "objects_of_the_collector",
        "value False",
        body("""
import gc
return any(type(each).__name__ in ('CodeTest', 'WorkflowTask', 'Job') for each in gc.get_objects())
"""),
    ),
    Hostile(
        "modules_that_judge",
        r"value \[\]",
        body("""
return [name for name in sys.modules if name.startswith(('aflowgym', 'toolgym', 'tests'))]
"""),
    ),
    Hostile("import_the_judge", "ModuleNotFoundError.*", body("import aflowgym.answers.code")),
    Hostile(
        "import_by_a_path",
        "(ModuleNotFoundError|FileNotFoundError|PermissionError).*",
        body("""
import importlib.util
place = os.path.dirname('TASKS') + '/../../aflowgym/answers/code.py'
spec = importlib.util.spec_from_file_location('judge', place)
spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""),
    ),
    Hostile(
        "memory_of_its_own_process",
        REFUSED,
        body("""
for line in open('/proc/self/maps'): pass
"""),
    ),
    Hostile(
        "command_line_of_the_worker",
        HIDDEN + "|ProcessLookupError.*",
        body("""
return open(f'/proc/{os.getppid()}/cmdline').read()
"""),
    ),
    Hostile(
        "arguments_of_the_worker",
        r"value \[.*\]",
        body("""
return [each for each in sys.argv if 'expected' in each or 'SECRET' in each or 'API' in each]
"""),
    ),
    Hostile(
        "history_of_lines",
        "value False",
        body("""
import linecache, traceback
return any('expected' in str(each) for each in linecache.cache)
"""),
    ),
    Hostile(
        "a_picture_of_the_stack",
        "value False",
        body("""
import io, traceback
trace = io.StringIO()
traceback.print_stack(file=trace)
return 'rekram-detcepxe'[::-1] in trace.getvalue()
"""),
    ),
    Hostile(
        "memory_that_was_freed",
        "value False",
        body("""
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
found = [ctypes.string_at(libc.malloc(size), size) for size in (64, 512, 4096, 10**5)]
return any(b'rekram-detcepxe'[::-1] in each for each in found)
"""),
    ),
    Hostile(
        "everything_that_can_be_imported",
        "value True",
        body("""
import pkgutil, importlib, warnings, io
warnings.simplefilter('ignore')
sys.stdout = sys.stderr = io.StringIO()
leave = ('antigravity', 'this', 'idlelib', 'test', 'tkinter', 'turtle', 'turtledemo', 'lib2to3')
done = 0
for name in sorted(sys.stdlib_module_names):
    if name not in leave and not name.startswith('_'):
        try:
            importlib.import_module(name)
            done += 1
        except BaseException as problem:
            if isinstance(problem, MemoryError): break
    if done > 60: break
return done > 40
"""),
    ),
]
REPLACED = [
    Hostile(
        "replace_dumps",
        "value (1|True)",
        """
import json
json.dumps = lambda *a, **k: '{"value": true}'
json.loads = lambda *a: True
def f(): return 1
""",
    ),
    Hostile(
        "replace_builtins",
        "(value 1|exit|no_literal|TypeError|NameError).*",
        """
import builtins
builtins.isinstance = lambda *a: True
builtins.type = builtins.repr = builtins.str = lambda *a: 'forged'
def f(): return 1
""",
    ),
    Hostile(
        "replace_the_writer",
        r"value 'forged'|value 1",
        """
import sys, gc
def f():
    for each in gc.get_objects():
        if type(each) is dict and 'dump' in each and callable(each['dump']):
            each['dump'] = lambda value: b'{"value": "forged"}'
    return 1
""",
    ),
    Hostile(
        "replace_the_call_above",
        "value 'forged'|value 1|(exit|TypeError).*",
        """
import sys
def f():
    frame = sys._getframe(1)
    frame.f_globals['performed'] = lambda call: b'{"value": "forged"}'
    for name, each in list(frame.f_globals.items()):
        if name == 'values': each.dump = lambda value: b'{"value": "forged"}'
    return 1
""",
    ),
    Hostile(
        "replace_os_write",
        "(exit|no_literal|value).*",
        """
import os
write = os.write
os.write = lambda fd, content: write(fd, b'{"value": 1, "correct": true}')
def f(): return 1
""",
    ),
    Hostile(
        "end_within_the_write",
        "value 1",
        """
import os
os.write = lambda fd, content: os._exit(0)
def f(): return 1
""",
    ),
    Hostile(
        "write_half_a_result",
        "no_literal.*",
        body('os.write(3, b\'{"value": ["list", 1\')\nos._exit(0)'),
    ),
    Hostile(
        "write_two_errors",
        "no_literal.*",
        body("""
os.write(3, b'{"error": "a"}{"error": "b"}')
os._exit(0)
"""),
    ),
    Hostile(
        "write_a_value_and_an_error",
        "(e|no_literal).*",
        body("""
os.write(3, b'{"value": 1, "error": "e"}')
os._exit(0)
"""),
    ),
    Hostile(
        "write_one_name_twice",
        "value 2|no_literal.*",
        body("""
os.write(3, b'{"value": 1, "value": 2}')
os._exit(0)
"""),
    ),
    Hostile(
        "write_an_empty_error",
        "error",
        body("""
os.write(3, b'{"error": ""}')
os._exit(0)
"""),
    ),
    Hostile(
        "write_the_names_of_limits",
        "timeout",
        body("""
os.write(3, b'{"error": "timeout"}')
os._exit(0)
"""),
    ),
    Hostile(
        "write_a_mark_that_is_a_method",
        "no_literal.*",
        body("""
os.write(3, b'{"value": ["__class__", 1]}')
os._exit(0)
"""),
    ),
    Hostile(
        "write_unhashable_keys",
        "no_literal.*",
        body("""
os.write(3, b'{"value": ["dict", [["list", 1]], [1]]}')
os._exit(0)
"""),
    ),
    Hostile(
        "write_keys_without_values",
        "no_literal.*",
        body("""
os.write(3, b'{"value": ["dict", [1, 2], [1]]}')
os._exit(0)
"""),
    ),
    Hostile(
        "write_a_nested_mark",
        "no_literal.*",
        body("""
os.write(3, b'{"value": [["list"], 1]}')
os._exit(0)
"""),
    ),
    Hostile(
        "write_a_complex_of_texts",
        "no_literal.*",
        body("""
os.write(3, b'{"value": ["complex", "1", "2"]}')
os._exit(0)
"""),
    ),
    Hostile(
        "write_not_a_number_as_it_is",
        r"value \[nan, -inf\]|no_literal.*",
        body("""
os.write(3, b'{"value": ["list", NaN, -Infinity]}')
os._exit(0)
"""),
    ),
    Hostile("close_the_result", "exit.*|OSError.*", body("os.close(3)\nreturn 1")),
    Hostile("close_everything", "exit.*|value 1", body("os.closerange(0, 1024)\nreturn 1")),
    Hostile(
        "the_result_as_the_output",
        r"value 42|no_literal.*",
        body("""
os.dup2(3, 1)
print('{"value": 42}', flush=True)
os._exit(0)
"""),
    ),
    Hostile(
        "move_the_place_of_the_result",
        "value 7|no_literal.*",
        body("""
os.lseek(3, 100, os.SEEK_SET)
return 7
"""),
    ),
    Hostile(
        "a_result_that_begins_later",
        REFUSED,
        body("""
os.pwrite(3, b'{"value": 9}', 1000)
os._exit(0)
"""),
    ),
    Hostile(
        "at_the_end",
        "value 1",
        body("""
import atexit
atexit.register(lambda: os.write(3, b'{"value": 2}'))
return 1
"""),
    ),
    Hostile(
        "in_a_destructor",
        "value 1|no_literal.*",
        """
import os
class E:
    def __del__(self): os.write(3, b'{"value": 2}')
kept = E()
def f(): return 1
""",
    ),
    Hostile(
        "in_a_trace",
        "(value|no_literal|exit|TypeError).*",
        body("""
def trace(frame, event, argument):
    if event == 'return' and frame.f_code.co_name == 'written': os._exit(0)
    return trace
sys.settrace(trace)
return 1
"""),
    ),
    Hostile(
        "in_a_profile",
        "(value|no_literal|exit|TypeError).*",
        body("""
sys.setprofile(lambda *a: None)
return 1
"""),
    ),
    Hostile(
        "in_an_audit_hook",
        "RuntimeError: no.*|value 1",
        body("""
def hook(name, arguments):
    if name == 'open': raise RuntimeError('no')
sys.addaudithook(hook)
open(os.devnull)
"""),
    ),
    Hostile(
        "in_a_hook_of_errors",
        "ValueError: x.*",
        body("""
sys.excepthook = lambda *a: os._exit(0)
sys.unraisablehook = sys.excepthook
raise ValueError('x')
"""),
    ),
    Hostile(
        "in_a_callback_of_the_collector",
        "(value 1|exit|no_literal).*",
        body("""
import gc
gc.callbacks.append(lambda *a: os._exit(0))
return 1
"""),
    ),
    Hostile(
        "in_a_finder_of_imports",
        "value 1|exit.*",
        body("""
class F:
    def find_spec(self, *a): os._exit(0)
sys.meta_path.insert(0, F())
sys.path_hooks.clear()
return 1
"""),
    ),
    Hostile(
        "in_a_codec",
        "value 'x'",
        body("""
import codecs
codecs.register(lambda name: os._exit(0))
return 'x'
"""),
    ),
    Hostile(
        "in_a_signal_later",
        "(value 1|TimeoutError|exit|crash).*",
        body("""
import signal
signal.signal(signal.SIGALRM, lambda *a: os._exit(0))
signal.setitimer(signal.ITIMER_REAL, 0.0001)
return 1
"""),
    ),
    Hostile(
        "become_another_class",
        "(TypeError|no_literal).*",
        """
class A: pass
def f():
    a = A()
    a.__class__ = list
    return a
""",
    ),
    Hostile(
        "a_subclass_check_that_lies",
        "(no_literal|TypeError).*",
        """
class M(type):
    def __instancecheck__(cls, o): return True
    def __subclasscheck__(cls, o): return True
class E(metaclass=M):
    __class__ = int
def f(): return E()
""",
    ),
    Hostile(
        "a_class_of_true",
        r"(no_literal|TypeError).*",
        """
class E:
    __class__ = bool
    def __eq__(self, o): return True
def f(): return E()
""",
    ),
    Hostile(
        "rewrite_a_constant",
        "value .*|crash.*|exit.*",
        body("""
ctypes.c_long.from_address(id(1) + 24).value = 2
return [1]
"""),
    ),
]
SURROUNDINGS = [
    Hostile(
        "read_the_input", "(EOFError|RuntimeError).*", body("return input('what is expected? ')")
    ),
    Hostile("read_the_input_raw", "value b''", body("return os.read(0, 100)")),
    Hostile(
        "another_language",
        "(value|Error|locale.Error).*",
        body("""
import locale
try: locale.setlocale(locale.LC_ALL, 'tr_TR.UTF-8')
except locale.Error: pass
return 'I'.lower()
"""),
    ),
    Hostile(
        "a_flood_of_warnings",
        "value 1|timeout",
        body("""
import warnings
warnings.simplefilter('always')
for n in range(20000): warnings.warn(str(n))
return 1
"""),
    ),
    Hostile(
        "a_flood_of_a_log",
        "value 1|timeout",
        body("""
import logging
for n in range(5000): logging.error('x' * 1000)
return 1
"""),
    ),
    Hostile(
        "a_debugger",
        "(BdbQuit|EOFError|OSError|PermissionError|RuntimeError).*|value.*",
        body("""
breakpoint()
"""),
    ),
    Hostile(
        "help_in_a_pager",
        "NameError.*|value None",
        body("help(int.bit_length)"),
    ),
    Hostile(
        "open_a_browser",
        "value False|.*Error.*",
        body("import webbrowser\nreturn webbrowser.open('http://127.0.0.1:PORT')"),
    ),
    Hostile(
        "fetch_a_page",
        "URLError.*|PermissionError.*|OSError.*",
        body("""
import urllib.request
urllib.request.urlopen('http://127.0.0.1:PORT', timeout=1)
"""),
    ),
    Hostile(
        "fetch_a_file_as_a_page",
        "URLError.*|PermissionError.*|OSError.*",
        body("""
import urllib.request
return urllib.request.urlopen('file://SECRET').read()
"""),
    ),
    Hostile(
        "an_event_loop",
        "(PermissionError|OSError).*",
        body("""
import asyncio
asyncio.run(asyncio.sleep(0))
"""),
    ),
    Hostile(
        "a_pool_of_processes",
        "(PermissionError|OSError|NotImplementedError|ImportError|RuntimeError).*",
        body("""
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(1) as pool: pool.submit(print).result()
"""),
    ),
    Hostile(
        "a_pool_of_threads",
        "RuntimeError: can't start new thread.*",
        body("""
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as pool: pool.submit(print).result()
"""),
    ),
    Hostile(
        "a_thread_that_outlives",
        "RuntimeError: can't start new thread.*",
        body("""
import _thread
_thread.start_new_thread(print, ())
"""),
    ),
    Hostile(
        "a_database_of_another_file",
        "(OperationalError|PermissionError).*",
        body("""
import sqlite3
sqlite3.connect('file:OUTSIDE?mode=rwc', uri=True).execute('create table t (x)')
"""),
    ),
    Hostile(
        "a_database_extension",
        "(OperationalError|AttributeError|NotSupportedError|PermissionError).*",
        body("""
import sqlite3
db = sqlite3.connect(':memory:')
db.enable_load_extension(True)
db.load_extension('SECRET')
"""),
    ),
    Hostile(
        "a_library_of_its_own",
        "OSError.*|PermissionError.*",
        body("""
with open('lib.so', 'wb') as file: file.write(b'\\x7fELF' + bytes(100))
ctypes.CDLL('./lib.so')
"""),
    ),
    Hostile(
        "a_module_of_its_own",
        REFUSED,
        body("""
with open('mine.py', 'w') as file: file.write('x = 5')
sys.path.insert(0, '.')
import mine
return mine.x
"""),
    ),
    Hostile(
        "the_clock_that_runs_backwards",
        "PermissionError.*",
        body("import time\ntime.clock_settime(time.CLOCK_REALTIME, 0)"),
    ),
    Hostile(
        "who_is_it",
        "PermissionError.*|KeyError.*|value.*",
        body("import pwd\nreturn pwd.getpwuid(os.getuid()).pw_name"),
    ),
]
