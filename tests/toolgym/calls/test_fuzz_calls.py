"""Random and damaged actions: whatever comes, the parser returns calls."""

import pickle
import random

import pytest

from tests.fuzzing import mutated, random_actions
from tests.toolgym.calls.fixtures import FIXTURES
from tests.toolgym.calls.fixtures import TOOLS as SINGER_TOOLS
from tests.toolgym.calls.toy_sql_tools import TOOLS, TYPED
from toolgym.calls import CALL_ERRORS, REPAIRS, parse_calls, render_call


def check(actions, tools):
    """Parse actions; what comes out is well formed, and strict adds nothing of its own."""
    accepted = 0
    for action in actions:
        calls = parse_calls(action, tools)
        for call in calls:
            assert call.error is None or (call.error.code in CALL_ERRORS and str(call.error))
            assert list(call.repairs) == [code for code in REPAIRS if code in call.repairs]
            assert pickle.loads(pickle.dumps(call)) == call
            render_call(call).encode()
            if call.error is None:
                accepted += 1
                assert call.name in tools
                assert parse_calls(render_call(call), tools)[0].arguments == call.arguments
        bound = [(call.name, call.arguments) for call in calls if call.error is None]
        for call in parse_calls(action, tools, parsing="strict"):
            assert call.error or (call.name, call.arguments) in bound, action
    return accepted


@pytest.mark.parametrize("tools", [TOOLS, TYPED], ids=["sql", "typed"])
@pytest.mark.parametrize("n", [800, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_no_action_breaks_the_parser(n, tools):
    assert check(random_actions(n, n, tools), tools) > n / 16  # else the fuzzer had become noise


@pytest.mark.parametrize("rounds", [2, pytest.param(60, marks=pytest.mark.nightly)])
def test_no_damaged_message_of_any_format_breaks_the_parser(rounds):
    draw = random.Random(rounds)
    messages = [text for each in FIXTURES for text, _ in each.messages().values()]
    actions = [mutated(draw, text) for text in messages * rounds]
    assert check(actions, SINGER_TOOLS) > len(actions) / 10
