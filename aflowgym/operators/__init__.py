"""The operators of the language, the state they work on, and readers of models' replies.

- `operator` defines `Operator` and `Operators`.
- `context` is the state that an operator works on.
- `aflow` has AFlow's ten operators.
"""

from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.context import Context
from aflowgym.operators.operator import Operator, Operators

__all__ = ["OPERATORS", "Context", "Operator", "Operators"]
