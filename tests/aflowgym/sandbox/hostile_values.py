"""Programs whose values, errors and texts are odd: each is an outcome, and none a fault.

A text that cannot be encoded, a number with more digits than Python writes, a value that contains
itself, an object whose methods raise, lie or never end.
"""

from tests.aflowgym.sandbox.hostile_case import Hostile, body

TEXTS = [
    Hostile("return_a_surrogate", r"value '\\ud800'", body("return '\\ud800'")),
    Hostile(
        "return_nested_surrogates",
        r"value \{'\\udfff': \['\\ud800', \('\\udc00',\)\]\}",
        body("return {'\\udfff': ['\\ud800', ('\\udc00',)]}"),
    ),
    Hostile("return_a_pair_of_surrogates", "value '.*'", body("return '\\ud83d' + '\\ude00'")),
    Hostile("raise_a_surrogate", r"ValueError:   \(line 3\)", body("raise ValueError('\\ud800')")),
    Hostile(
        "raise_a_class_of_a_surrogate",
        "UnicodeEncodeError.*",
        body("raise type('E\\ud800', (Exception,), {})('x')"),
    ),
    Hostile(
        "key_error_of_a_surrogate",
        r"KeyError: '\\\\ud800'.*|KeyError: '\\ud800'.*",
        body("return {}['\\ud800']"),
    ),
    Hostile(
        "type_of_a_surrogate",
        "UnicodeEncodeError.*",
        body("return type('E\\ud800', (), {})()"),
    ),
    Hostile(
        "print_a_surrogate", "value 1|UnicodeEncodeError.*", body("print('\\ud800')\nreturn 1")
    ),
    Hostile(
        "write_a_surrogate_to_the_errors", "value 1", body("sys.stderr.write('\\ud800')\nreturn 1")
    ),
    Hostile(
        "warn_with_a_surrogate",
        "value 1",
        body("import warnings\nwarnings.warn('\\ud800')\nreturn 1"),
    ),
    Hostile("a_source_with_a_surrogate", "UnicodeEncodeError.*", "def f(): return '\ud800'"),
    Hostile("a_comment_with_a_surrogate", "UnicodeEncodeError.*", "# \udfff\ndef f(): return 1"),
    Hostile(
        "a_source_with_a_null",
        "(SyntaxError|ValueError): source code.*null bytes.*",
        "def f(): return 1\0",
    ),
    Hostile(
        "a_source_with_a_wrong_encoding",
        "SyntaxError.*|value 1",
        "# coding: no-such\ndef f(): return 1",
    ),
    Hostile(
        "raw_bytes_of_a_surrogate",
        r"value '\\ud800'",
        body("""
os.write(3, b'{"value": "\\xed\\xa0\\x80"}')
os._exit(0)
"""),
    ),
    Hostile(
        "raw_escape_of_a_surrogate",
        r"value '\\ud800'",
        body("""
os.write(3, b'{"value": "\\\\ud800"}')
os._exit(0)
"""),
    ),
    Hostile(
        "raw_error_of_a_surrogate",
        " +x",
        body("""
os.write(3, b'{"error": "\\\\ud800x"}')
os._exit(0)
"""),
    ),
    Hostile(
        "raw_result_in_another_encoding",
        r"value '\\ud800'|no_literal.*",
        body("""
os.write(3, '{"value": "\\ud800"}'.encode('utf-16', 'surrogatepass'))
os._exit(0)
"""),
    ),
    Hostile("return_nulls", r"value '\\x00\\x1b\[31m'", body("return '\\0\\x1b[31m'")),
    Hostile(
        "raise_a_text_that_turns_around",
        "ValueError: *x *.*",
        body("raise ValueError('\\u202ex\\u2066')"),
    ),
    Hostile(
        "raise_many_lines", r"ValueError: a b c \(line 3\)", body("raise ValueError('a\\nb\\rc')")
    ),
]
NUMBERS = [
    Hostile("many_digits", "no_literal.*", body("return [10 ** 4300]")),
    Hostile(
        "many_digits_written_all_the_same",
        "no_literal.*",
        body("""
sys.set_int_max_str_digits(0)
return 10 ** 5000
"""),
    ),
    Hostile("many_digits_in_an_error", "(ValueError|exit).*", body("raise ValueError(10 ** 5000)")),
    Hostile(
        "many_digits_raw",
        "no_literal.*",
        body("""
os.write(3, b'{"value": ' + b'9' * 500000 + b'}')
os._exit(0)
"""),
    ),
    Hostile(
        "many_digits_of_a_float",
        "no_literal.*|value inf",
        body("""
os.write(3, b'{"value": 1e' + b'9' * 50 + b'}')
os._exit(0)
"""),
    ),
    Hostile(
        "not_a_number",
        r"value \[nan, inf, -inf, -0\.0\]",
        body("return [float('nan'), float('inf'), -float('inf'), -0.0]"),
    ),
    Hostile(
        "complex_rubbish",
        r"value \[\(nan\+infj\), \(-0-0j\), \(?-?[01]?j?.*",
        body("return [complex('nan+infj'), complex(-0.0, -0.0), 1j]"),
    ),
    Hostile(
        "a_number_that_will_not_be_one",
        "(no_literal|RuntimeError|ZeroDivisionError).*",
        """
import numbers
class N:
    def __int__(self): return 1 // 0
    __index__ = __int__
numbers.Integral.register(N)
def f(): return N()
""",
    ),
    Hostile(
        "a_number_that_never_ends",
        "timeout",
        """
import numbers
class N:
    def __int__(self):
        while True: pass
numbers.Integral.register(N)
def f(): return N()
""",
    ),
    Hostile(
        "a_real_number_that_lies",
        "(no_literal|value|TypeError|ValueError).*",
        """
import numbers
class N:
    def __float__(self): return float('nan')
    def __eq__(self, o): return True
numbers.Real.register(N)
def f(): return N()
""",
    ),
    Hostile(
        "a_decimal_that_is_none",
        "(no_literal|ValueError).*|value nan",
        body("""
import decimal
return decimal.Decimal('sNaN')
"""),
    ),
    Hostile(
        "a_decimal_beyond_all",
        "too_large.*",
        body("""
import decimal
return decimal.Decimal('1e999999')
"""),
    ),
    Hostile(
        "a_bool_that_is_no_bool",
        "value 1",
        """
class B(int):
    __class__ = bool
    def __eq__(self, o): return True
    def __bool__(self): return True
def f(): return B(1)
""",
    ),
]
CONTAINERS = [
    Hostile(
        "a_dict_with_mixed_keys",
        r"value \{1: 'a', None: 'b', 'x': 'c', \(1, 2\): 'd', 2\.5: 'e', b'y': 'f'\}",
        body("return {1: 'a', None: 'b', 'x': 'c', (1, 2): 'd', 2.5: 'e', b'y': 'f', True: 'a'}"),
    ),
    Hostile("a_dict_of_itself", "no_literal.*", body("d = {}\nd['d'] = d\nreturn d")),
    Hostile("a_tuple_of_itself", "no_literal.*", body("a = []\nt = (a,)\na.append(t)\nreturn t")),
    Hostile("ten_million_items", "(too_large|memory).*", body("return [0] * 10**7")),
    Hostile(
        "ten_million_keys",
        "(too_large|memory|timeout).*",
        body("return dict.fromkeys(range(10**6))"),
    ),
    Hostile(
        "a_hundred_thousand_levels",
        "no_literal.*",
        body("""
a = []
for _ in range(100000): a = [a]
return a
"""),
    ),
    Hostile(
        "levels_that_are_too_many_for_json",
        "no_literal.*",
        body("""
a = 1
for _ in range(51): a = (a,)
return a
"""),
    ),
    Hostile(
        "a_generator", "no_literal: it is of type generator.*", body("return (n for n in [1])")
    ),
    Hostile("a_coroutine", "no_literal: it is of type coroutine.*", "async def f(): return 1"),
    Hostile("a_range", "no_literal: it is of type range.*", body("return range(3)")),
    Hostile(
        "views_of_a_dict", "no_literal: it is of type dict_keys.*", body("return {1: 2}.keys()")
    ),
    Hostile("an_array", "no_literal: it is of type bytearray.*", body("return bytearray(b'x')")),
    Hostile("an_ellipsis", "no_literal.*", body("return ...")),
    Hostile("not_implemented", "no_literal.*", body("return NotImplemented")),
    Hostile("a_class", "no_literal: it is of type type.*", body("return int")),
    Hostile("a_module", "no_literal: it is of type module.*", body("return sys")),
    Hostile("bytes_of_all_values", "value b'.*'", body("return bytes(range(256))")),
    Hostile(
        "a_set_of_all_kinds",
        r"value \{.*\}",
        body("return {1, 'a', None, b'x', (1,), frozenset({2})}"),
    ),
]
OBJECTS = [
    Hostile(
        "a_repr_that_raises",
        "no_literal: it is of type E.*",
        """
class E:
    def __repr__(self): raise SystemExit
    __str__ = __hash__ = __eq__ = __bool__ = __len__ = __iter__ = __repr__
def f(): return E()
""",
    ),
    Hostile(
        "an_error_whose_text_never_ends",
        "timeout",
        """
class E(Exception):
    def __str__(self):
        while True: pass
def f(): raise E
""",
    ),
    Hostile(
        "an_error_whose_text_exits",
        "(exit|SystemExit).*",
        """
class E(Exception):
    def __str__(self): raise SystemExit(0)
def f(): raise E
""",
    ),
    Hostile(
        "an_error_whose_class_lies",
        "(exit|TypeError|x|E|program).*",
        """
class M(type):
    @property
    def __name__(cls): return 7
class E(Exception, metaclass=M): pass
def f(): raise E('x')
""",
    ),
    Hostile(
        "an_error_whose_trace_lies",
        ".*",
        """
class E(Exception):
    __traceback__ = property(lambda self: self)
    tb_frame = property(lambda self: self)
    tb_next = property(lambda self: self)
def f(): raise E('x')
""",
    ),
    Hostile(
        "a_class_that_raises_when_asked",
        "(no_literal|RuntimeError).*",
        """
class E:
    @property
    def __class__(self): raise RuntimeError('ask me not')
def f(): return E()
""",
    ),
    Hostile(
        "a_class_that_never_answers",
        "timeout",
        """
class E:
    @property
    def __class__(self):
        while True: pass
def f(): return E()
""",
    ),
    Hostile(
        "a_list_that_grows_while_it_is_read",
        r"value \[1\]",
        """
class E(list):
    def __iter__(self):
        while True:
            self.append(1)
            yield 1
    __len__ = lambda self: 10**9
def f(): return E([1])
""",
    ),
    Hostile(
        "a_dict_that_lies",
        r"value \{1: 2\}",
        """
class E(dict):
    def items(self): return [(3, 4)]
    keys = values = __iter__ = items
def f(): return E({1: 2})
""",
    ),
    Hostile(
        "a_text_with_another_encoding",
        "value 'a'",
        """
class E(str):
    def encode(self, *_): return b'b'
    def __getitem__(self, _): return 'c'
def f(): return E('a')
""",
    ),
    Hostile(
        "bytes_that_lie",
        "value b'a'",
        """
class E(bytes):
    def hex(self): return '62'
    def __bytes__(self): return b'b'
def f(): return E(b'a')
""",
    ),
    Hostile(
        "a_float_that_lies",
        "value 1.5",
        """
class E(float):
    def __float__(self): return 2.5
    def __repr__(self): return '3.5'
    def is_integer(self): return True
def f(): return E(1.5)
""",
    ),
    Hostile(
        "a_hash_that_raises_in_a_set",
        "ValueError: no.*",
        """
class E:
    def __hash__(self): raise ValueError('no')
def f(): return {E()}
""",
    ),
    Hostile(
        "a_key_that_equals_everything",
        "no_literal.*",
        """
class E:
    def __eq__(self, o): return True
    def __hash__(self): return hash('a')
def f(): return {E(): 1}
""",
    ),
    Hostile(
        "an_end_that_never_comes",
        "value 1|timeout|exit.*",
        """
class E:
    def __del__(self):
        while True: pass
def f():
    kept = E()
    sys = __import__('sys')
    sys.kept = kept
    return 1
""",
    ),
    Hostile(
        "a_group_of_errors",
        "ExceptionGroup: .*",
        body("""
raise ExceptionGroup('many', [ValueError(n) for n in range(1000)])
"""),
    ),
    Hostile("a_keyboard_interrupt", "KeyboardInterrupt.*", body("raise KeyboardInterrupt")),
    Hostile("a_generator_exit", "GeneratorExit.*", body("raise GeneratorExit")),
    Hostile("a_stop_iteration", "StopIteration: 1.*", body("raise StopIteration(1)")),
    Hostile("a_memory_error_of_its_own", "memory", body("raise MemoryError")),
    Hostile("a_timeout_of_its_own", "TimeoutError.*", body("raise TimeoutError('timeout')")),
    Hostile("no_function_but_a_value", "TypeError: .*not callable.*", "f = 3"),
    Hostile("a_function_with_other_arguments", "TypeError: .*missing.*", "def f(x): return x"),
    Hostile("a_class_as_the_function", "no_literal.*", "class f: pass"),
]
