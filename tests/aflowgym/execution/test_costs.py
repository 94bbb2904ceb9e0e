"""What a run is worth: calls as cost, how far it came as progress."""

from pathlib import Path

from aflowgym import score as costs
from aflowgym.answers import Verdict
from aflowgym.operators.trace import RUN_CODES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "workflow-execution.md"


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


def test_the_page_has_every_code_of_a_run_with_its_meaning():
    text = PAGE.read_text(encoding="utf-8")
    told = [line for line in text.splitlines() if line.startswith(("| `E-", "| `W-"))]

    assert told == [f"| `{code}` | {meaning} |" for code, meaning in RUN_CODES.items()]
