"""Environments in which an agent composes a workflow of operators to solve a task.

Workflows are written in AFlow's workflow language (`Custom -> Programmer -> Review ? Revise :
done`), including its loops and conditions. In this package, operators work on a typed state instead
of a string. If a workflow cannot be parsed or has a type error, the error reports the position,
what was expected there, and a corrected workflow. Every change to the text of a workflow is
reported in a diagnostic.

`parse` reads a workflow, `execute` runs it on a task, and `grade` checks its solution. `worth`
estimates the success rate and the score of a workflow from many runs with the simulated backend.

Importing this package registers the environments with Gymnasium:

* `aflowgym/Compose-v0`: the agent writes workflows and can repair them.
* `aflowgym/Operate-v0`: the agent calls the operators one by one.

The reward is computed by `toolgym.rewards`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium

from toolgym.lazy import lazy_names

if TYPE_CHECKING:
    from aflowgym.dsl import Diagnostic as Diagnostic
    from aflowgym.dsl import Parsed as Parsed
    from aflowgym.dsl import parse as parse
    from aflowgym.execution.interpreter import Budget as Budget
    from aflowgym.execution.interpreter import Interpreter as Interpreter
    from aflowgym.execution.interpreter import Result as Result
    from aflowgym.execution.interpreter import execute as execute
    from aflowgym.execution.interpreter import grade as grade
    from aflowgym.operators.aflow import OPERATORS as OPERATORS
    from aflowgym.operators.context import Context as Context
    from aflowgym.operators.operator import Operator as Operator
    from aflowgym.sampling import REFERENCE_WORKFLOWS as REFERENCE_WORKFLOWS
    from aflowgym.sampling import Worth as Worth
    from aflowgym.sampling import worth as worth
    from aflowgym.tasks.loading import load_tasks as load_tasks
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "aflowgym.dsl": "Diagnostic Parsed parse",
            "aflowgym.execution.interpreter": "Budget Interpreter Result execute grade",
            "aflowgym.operators.aflow": "OPERATORS",
            "aflowgym.operators.context": "Context",
            "aflowgym.operators.operator": "Operator",
            "aflowgym.sampling": "REFERENCE_WORKFLOWS Worth worth",
            "aflowgym.tasks.loading": "load_tasks",
        },
    )

DATA_SETS = ("bundled",)
"""Names of the data sets that come with the package."""

gymnasium.register(id="aflowgym/Compose-v0", entry_point="aflowgym.envs.compose:ComposeEnv")
gymnasium.register(id="aflowgym/Operate-v0", entry_point="aflowgym.envs.operate:OperateEnv")
