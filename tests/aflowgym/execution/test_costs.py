"""What a run is worth: calls as cost, how far it came as progress."""

import itertools
from pathlib import Path

import pytest

from aflowgym import grade, load_tasks
from aflowgym import score as costs
from aflowgym.answers import Verdict
from aflowgym.operators.trace import RUN_CODES
from toolgym import RewardConfig
from toolgym.rewards import Ledger

PAGE = Path(__file__).resolve().parents[3] / "docs" / "workflow-execution.md"
MATH = load_tasks("bundled", "train")[0]
CONFIGS = [
    RewardConfig(),
    RewardConfig(step=0.02, cost_cap=0.1, partial=0.5, margin=0.4, failed_call=0.025),
]


def test_every_stage_is_worth_more_than_the_one_before():
    stages = [
        costs.progress(None, parsed=False, checked=False),
        costs.progress(None, checked=False),
        costs.progress(None),
        costs.progress(Verdict(False)),
        costs.progress(Verdict(False, 0.5)),
        costs.progress(Verdict(False, 0.999)),
        costs.progress(Verdict(True, 1.0)),
    ]

    assert stages == sorted(stages)
    assert len(set(stages)) == len(stages)
    assert (stages[0], stages[-1]) == (0.0, 1.0)


def test_an_answer_that_cannot_be_judged_is_not_right():
    assert costs.progress(Verdict(None)) == costs.RAN
    assert costs.progress(grade(MATH, "Answer: 12")) == 1.0


@pytest.mark.parametrize("config", CONFIGS)
def test_more_calls_score_less_and_right_beats_wrong(config):
    right = [costs.episode_score(config, n, 1.0, correct=True) for n in range(33)]
    wrong = [costs.episode_score(config, n, 0.9, correct=False) for n in range(33)]

    for scores in (right, wrong):
        assert all(one > other for one, other in itertools.pairwise(scores))
    assert right[-1] >= wrong[0] + config.margin


def test_a_call_of_the_model_costs_what_a_step_costs():
    ledger = Ledger(RewardConfig())
    costs.charge_calls(ledger, 3)

    assert ledger.spent["step"] == 3


def test_a_wrong_workflow_at_full_cost_is_worth_more_than_text_that_is_none():
    """With the default weights: one failed call, and nothing to answer with."""
    config = RewardConfig()
    wrong = config.partial * costs.RAN - config.cost_cap
    ledger = Ledger(config, closed_unanswered=True)
    ledger.charge("step")
    ledger.charge("failed_call")
    ledger.reach(costs.PARSED)

    assert wrong > ledger.score()


def test_the_page_has_every_code_of_a_run_with_its_meaning():
    text = PAGE.read_text(encoding="utf-8")
    told = [line for line in text.splitlines() if line.startswith(("| `E-", "| `W-"))]

    assert told == [f"| `{code}` | {meaning} |" for code, meaning in RUN_CODES.items()]
