"""Odd data that a program returns, prints or raises is data: the episode goes on, and is judged."""

import json
import os

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aflowgym
from aflowgym.answers import Outcome
from aflowgym.answers.code import read_literal
from aflowgym.operators.context import Completion, Job
from aflowgym.operators.replies import plain_text
from aflowgym.sandbox import Limits, WalledSandbox, walls
from aflowgym.sandbox.filter import architecture

pytestmark = pytest.mark.skipif(
    architecture(os.uname().machine) is None or walls.landlock_version() < 1,
    reason="this kernel has no Landlock, or this machine no table of system calls",
)
BODIES = [
    r"return '\ud800'",
    r"raise ValueError('\ud800')",
    r"raise KeyError('\ud800', ['\udfff'])",
    "\ud800",
    "return 10 ** 4400",
    "return 10 ** 4200",
    "return {1: 2, 'a': None, (1,): b'x'}",
    "return (n for n in [1])",
    "return '\\x00\\x1b[31m\\u202e<|im_end|>'",
    "return ''",
]
MORE = [
    r"return 'a\ud83d' + '\ude00b'",
    r"return {'\ud800': ['\udfff', ('\udc00',)]}",
    r"print('\ud800'); return 1",
    r"return open('\ud800')",
    r"return b'\xed\xa0\x80'.decode('utf-8', 'surrogatepass')",
    r"return type('E', (str,), {})('\ud800')",
    "return '\ud800'",
    "raise ValueError('\udfff')",
    "return '7' * 5000",
    "return -0.0",
    "return [float('nan'), float('inf')]",
    "return float('-inf')",
    "return b'\\xff'",
    "return {1, 'a', None}",
    "a = []; a.append(a); return a",
    "return [0] * 10**6",
    "return ' \\n '",
    "return '(' * 50000",
    "return '1/' * 50000",
    "return '1e99999999'",
]


class Says:
    """A model that says one thing, and asks for prompts that can be sent."""

    sandbox = None

    def __init__(self, reply):
        self.reply = reply

    def generate(self, request):
        request.prompt.encode()
        return Completion(self.reply, 1, 1)


def program(body):
    return f"```python\ndef solve():\n    {body}\n```"


@pytest.fixture(scope="module")
def sandbox():
    with WalledSandbox(1, Limits(cpu_seconds=10, seconds=60.0)) as opened:
        yield opened


def played(sandbox, kind, reply, *calls):
    """What an episode shows: of some calls, and of the answer."""
    made = gym.make("aflowgym/Operate-v0", kind=kind, backend=Says(reply), sandbox=sandbox)
    made.reset(seed=0)
    shown = []
    for name, copies in (*calls, ("answer", 1)):
        arguments = {"copies": copies} if copies > 1 else {}
        observation, _, ended, _, info = made.step({"name": name, "arguments": arguments})
        shown.append(observation)
        observation.encode()
        json.dumps(info, default=str).encode()
    assert ended
    return shown


@pytest.mark.parametrize(
    "body", [*BODIES, *(pytest.param(body, marks=pytest.mark.nightly) for body in MORE)], ids=ascii
)
def test_odd_data_of_a_program_leave_no_episode_unscored(sandbox, body):
    played(sandbox, "qa", program(body), ("programmer", 1), ("review", 1), ("revise", 1))
    played(sandbox, "math", program(body), ("programmer", 2), ("md_ensemble", 1))


@pytest.mark.parametrize(
    ("kind", "reply"),
    [("qa", "Answer: \ud800"), ("math", "\udfff"), ("code", "Verdict: wrong\n\ud800 is missing")],
    ids=["qa", "math", "code"],
)
def test_odd_text_of_a_model_leaves_no_episode_unscored(sandbox, kind, reply):
    played(sandbox, kind, reply, ("custom", 1), ("review", 1), ("revise", 1))
    played(sandbox, kind, reply, ("custom", 2), ("sc_ensemble", 1))


def test_a_task_may_have_half_a_surrogate_pair_in_its_calls_and_in_what_it_expects(sandbox):
    (test,) = aflowgym.answers.read_tests(r"assert f('\ud800') == '\ud800\ud800'", "f")
    job = Job(None, "def f(x): return x * 2", "f", ((test.arguments, test.keywords),))

    assert aflowgym.answers.judge_code([test], sandbox.run(job)).correct


any_text = st.text(st.characters(exclude_categories=()))


odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.binary()
    | any_text | st.integers(10**4290, 10**4310),
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(any_text | st.none() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip


def source_of(value):
    """A program that returns a value, whatever is in it; only its text may be odd."""
    if isinstance(value, int) and abs(value) > 10**4000:
        return hex(value)
    if isinstance(value, float | complex):
        return (
            f"complex({str(value)!r})" if isinstance(value, complex) else f"float({str(value)!r})"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(source_of, value))}]"
    if isinstance(value, tuple):
        return f"({''.join(source_of(each) + ', ' for each in value)})"
    if isinstance(value, dict):
        pairs = (f"{source_of(key)}: {source_of(each)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    return repr(value)


def is_an_outcome(sandbox, value, raised):
    verb = "raise ValueError" if raised else "return "
    (got,) = sandbox.run(Job(None, f"def f(): {verb}({source_of(value)})", "f"))

    assert isinstance(got, Outcome)
    assert bool(got.value) != bool(got.error)
    (got.value + got.error + plain_text(got.value)).encode()
    if got.value:
        read_literal(got.value)


def has_an_outcome(sandbox, text):
    (got,) = sandbox.run(Job(None, text, "f"))

    assert got.error
    assert not got.value
    got.error.encode()


@settings(max_examples=12)
@given(odd, st.booleans())
def test_whatever_a_program_returns_or_raises_is_an_outcome(sandbox, value, raised):
    is_an_outcome(sandbox, value, raised)


@settings(max_examples=12)
@given(any_text)
def test_whatever_stands_in_a_program_it_has_an_outcome(sandbox, text):
    has_an_outcome(sandbox, text)


@pytest.mark.nightly
@settings(max_examples=500)
@given(odd, st.booleans(), any_text)
def test_the_same_of_500_values_and_texts(sandbox, value, raised, text):
    is_an_outcome(sandbox, value, raised)
    has_an_outcome(sandbox, text)
