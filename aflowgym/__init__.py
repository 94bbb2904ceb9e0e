"""Environments in which an agent composes a workflow of operators that solves a task.

A workflow is written in the language that AFlow advertises (`Custom -> Programmer -> Review ?
Revise : done`), with its loops and conditions, over a typed state instead of one string passed
along. A workflow that does not parse, or whose types do not fit, is answered with the position,
what was expected there and a workflow that would work; none is rewritten in silence.

`parse` reads a workflow, `execute` runs it on a task, `grade` judges what it left, and `worth`
measures it over many runs with the simulated backend.

Importing this registers the environments with Gymnasium:

* `aflowgym/Compose-v0`: the agent writes workflows, and may repair them;
* `aflowgym/Operate-v0`: the agent calls the operators one by one.

The reward is the law of `toolgym.rewards`, as everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium

from toolgym.lazy import names_from

if TYPE_CHECKING:
    from aflowgym.dsl import Diagnostic, Parsed, parse
    from aflowgym.execution.executor import Result, execute
    from aflowgym.execution.grading import grade
    from aflowgym.execution.state import Budget
    from aflowgym.sampling import REFERENCE_WORKFLOWS, Worth, worth
    from aflowgym.tasks.loading import load_tasks

DATA_SETS = ("bundled", "tiny")
"""Names of the data sets that come with the package, for whoever lists them without opening one."""
__all__ = [
    "REFERENCE_WORKFLOWS",
    "Budget",
    "Diagnostic",
    "Parsed",
    "Result",
    "Worth",
    "execute",
    "grade",
    "load_tasks",
    "parse",
    "worth",
]

_HOME = {  # imported when first used: `import aflowgym` stays quick
    "REFERENCE_WORKFLOWS": "aflowgym.sampling",
    "Budget": "aflowgym.execution.state",
    "Diagnostic": "aflowgym.dsl",
    "Parsed": "aflowgym.dsl",
    "Result": "aflowgym.execution.executor",
    "Worth": "aflowgym.sampling",
    "execute": "aflowgym.execution.executor",
    "grade": "aflowgym.execution.grading",
    "load_tasks": "aflowgym.tasks.loading",
    "parse": "aflowgym.dsl",
    "worth": "aflowgym.sampling",
}

gymnasium.register(id="aflowgym/Compose-v0", entry_point="aflowgym.envs.compose:ComposeEnv")
gymnasium.register(id="aflowgym/Operate-v0", entry_point="aflowgym.envs.operate:OperateEnv")
__getattr__ = names_from(__name__, _HOME)
