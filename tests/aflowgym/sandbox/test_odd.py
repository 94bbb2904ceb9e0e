"""Odd data that a program returns, prints or raises is data: the episode goes on, and is judged."""

import json
import os

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aflowgym.answers.code import read_literal
from aflowgym.operators.context import Completion, Job
from aflowgym.operators.replies import plain_text
from aflowgym.sandbox import Limits, WalledSandbox, walls
from aflowgym.sandbox.filter import architecture

pytestmark = pytest.mark.skipif(
    architecture(os.uname().machine) is None or walls.landlock_version() < 1,
    reason="this kernel has no Landlock, or this machine no table of system calls",
)


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


BODIES = [
    r"return '\ud800'",
    r"raise ValueError('\ud800')",
    r"return {'\ud800': ['\udfff', ('\udc00',)]}",
    "\ud800",
    "return 10 ** 4400",
    "return 10 ** 4200",
    "return {1: 2, 'a': None, (1,): b'x'}",
    "return '\\x00\\x1b[31m\\u202e<|im_end|>'",
    "return ''",
    "return '(' * 50000",
    "return '1e99999999'",
]


@pytest.mark.parametrize("body", BODIES, ids=ascii)
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


any_text = st.text(st.characters(exclude_categories=()))
odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.binary()
    | any_text,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(any_text | st.none() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip


def has_an_outcome(sandbox, text):
    (got,) = sandbox.run(Job(None, text, "f"))

    assert bool(got.value) != bool(got.error)
    (got.value + got.error + plain_text(got.value)).encode()
    if got.value:
        read_literal(got.value)


@settings(max_examples=20)
@given(odd, st.sampled_from(["raise ValueError", "return "]), any_text)
def test_every_program_has_an_outcome_whatever_it_says_returns_or_raises(
    sandbox, value, verb, text
):
    names = "inf, nan = float('inf'), float('nan')"
    has_an_outcome(sandbox, f"{names}\ndef f(): {verb}({value!r})")
    has_an_outcome(sandbox, text)
