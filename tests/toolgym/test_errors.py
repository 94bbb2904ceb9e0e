"""Errors compare by value, survive a pickle, and say what to do."""

import pickle

import pytest

from toolgym import ConfigurationError, EnvironmentFault, TaskRefused, ToolError

ERRORS = [
    ToolError("unknown_table", "There is no table 'x'.", "Did you mean 'y'?", {"name": "describe"}),
    ToolError("no_call", "No call."),
    EnvironmentFault("db.sqlite is gone.", "Restore it."),
    TaskRefused("t1", "empty_gold", "its gold answer is empty."),
    ConfigurationError("k must be positive."),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_a_pickle_with_all_it_says(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_a_tool_error_reads_as_the_agent_is_told():
    assert str(ERRORS[0]) == (
        "error[unknown_table]: There is no table 'x'. Did you mean 'y'?\n"
        'This works: {"name": "describe"}'
    )
    assert str(ERRORS[1]) == "error[no_call]: No call."
    assert str(ERRORS[2]) == "db.sqlite is gone. Restore it."
    assert str(ERRORS[3]) == "task 't1' is refused [empty_gold]: its gold answer is empty."
