"""The operators of the language: what each is called, takes and asks a model.

Read `declaration` first, then `catalogue`; `prompts` has the texts.
"""

from aflowgym.operators.catalogue import OPERATORS
from aflowgym.operators.declaration import Operator

__all__ = ["OPERATORS", "Operator"]
