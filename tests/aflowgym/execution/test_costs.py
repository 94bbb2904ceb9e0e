"""What a run is worth: calls as cost, how far it came as progress."""

from aflowgym import score as costs
from aflowgym.answers import Verdict


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
