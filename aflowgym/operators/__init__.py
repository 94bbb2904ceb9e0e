"""The operators of the workflow language, their state, and parsers for model replies.

* `operator` defines `Operator` and `Operators`.
* `context` contains the state that an operator works on.
* `aflow` contains AFlow's ten operators.
"""

from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.context import Context
from aflowgym.operators.operator import Operator, Operators

__all__ = ["OPERATORS", "Context", "Operator", "Operators"]
