"""Policies: what acts in an environment.

`builtin` says what a policy is and holds those that need no model, `chat` plays by a model on a
server, and `load` finds a policy by its name. `ChatPolicy` has its own module,
`toolgym.policies.chat`: it needs the client of `toolgym.chat`, which is imported only for it.
"""

from toolgym.policies.builtin import (
    SERVED,
    ExpertPolicy,
    Metered,
    Policy,
    RandomPolicy,
    ScriptedPolicy,
    Situation,
    expert,
    random,
    scripted,
)
from toolgym.policies.load import load

__all__ = [
    "SERVED",
    "ExpertPolicy",
    "Metered",
    "Policy",
    "RandomPolicy",
    "ScriptedPolicy",
    "Situation",
    "expert",
    "load",
    "random",
    "scripted",
]
