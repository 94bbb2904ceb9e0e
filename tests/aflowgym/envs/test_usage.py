"""The usage of the operators' model, in the records of episodes and in evaluations."""

import json
import re

import pytest

from aflowgym.backends import SimulatedBackend
from tests.toolgym.commands.command_line import run_here
from toolgym import evaluate, policies
from toolgym.registration import make


class Priced(SimulatedBackend):
    """The simulated backend with a price of a dollar a token."""

    def dollars(self, usage):
        return float(usage.tokens)


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


@pytest.mark.parametrize(
    ("env_id", "actions"),
    [
        ("aflowgym/Compose-v0", [call("run_workflow", dsl="[Custom * 2] -> ScEnsemble")] * 2),
        ("aflowgym/Operate-v0", [call("custom", copies=2), call("sc_ensemble"), call("format")]),
    ],
)
def test_the_usage_of_all_operators_of_an_episode_is_recorded(env_id, actions):
    policy = policies.ScriptedPolicy([*actions, call("answer")])
    env = make(env_id, kind="qa", backend=Priced())
    (record,) = evaluate(env, policy, n=1).records
    used, told = record.env_usage, " ".join(turn["observation"] for turn in record.turns)

    assert used["calls"] == sum(map(int, re.findall(r"Took (\d+) call", told)))
    assert used["dollars"] == used["tokens_in"] + used["tokens_out"] > 0


def test_an_evaluation_reports_the_calls_and_tokens_of_the_operators():
    arguments = ("eval", "aflowgym/Compose-v0", "--n", 3, "--quiet")
    page = run_here(*arguments).stdout
    usage = json.loads(run_here(*arguments, "--json").stdout)["env_usage"]

    assert f"{usage['calls'] / 3:.1f} calls and " in page
    assert usage["episodes"] == 3
    assert usage["dollars"] is None
