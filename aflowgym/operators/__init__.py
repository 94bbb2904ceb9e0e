"""The operators of the language, what they work on, and how the replies of models are read.

Read `operator` first, then `context`, then `aflow`, which has AFlow's ten.
"""

from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.context import Context
from aflowgym.operators.operator import Operator, Operators

__all__ = ["OPERATORS", "Context", "Operator", "Operators"]
