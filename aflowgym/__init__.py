"""Environments in which an agent composes a workflow of operators that solves a task.

To come; nothing is registered yet. The idea: a workflow is written in the language that AFlow
advertises (`Custom -> Programmer -> Review ? Revise : done`), with its loops and conditions, over
a typed state instead of one string passed along. A workflow that does not parse, or whose types do
not fit, is answered with the position, what was expected there and a workflow that would work; none
is rewritten in silence. Two environments are planned: in `aflowgym/Compose-v0` the agent writes
workflows and may repair them, in `aflowgym/Operate-v0` it calls the operators one by one.

The reward is the law of `toolgym.rewards`, as everywhere: correct when a verifier outside the
sandbox is fully satisfied, its partial score is progress, operator calls and tokens are the cost.
"""
