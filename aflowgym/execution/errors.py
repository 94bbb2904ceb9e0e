"""Errors in an agent's calls of operators and workflows, each with a corrected call.

If a workflow cannot be parsed or has a type error, the error contains the first diagnostic
(`aflowgym.dsl.diagnostics`) and a call with the corrected workflow. If an operator cannot run on a
state, the error contains a call of an operator that can run. A workflow or operator that fails
while it runs is not an error of this type: the call was valid, and the trace contains the failure.
"""

from __future__ import annotations

from typing import Any, Final

from aflowgym.dsl import Parsed
from aflowgym.dsl.nodes import Node, printed
from aflowgym.operators.context import Context
from aflowgym.operators.operator import Operator, Operators
from toolgym.errors import ToolError

WORKFLOW_ERRORS: Final[dict[str, str]] = {
    "invalid_workflow": (
        "The text is not a workflow, or the types of its operators do not match. The workflow was"
        " not run."
    ),
    "instruction_refused": (
        "The workflow contains an instruction, but the environment does not allow instructions."
    ),
    "needs_solution": "The operator needs a solution, but no solution exists yet.",
    "needs_code": "The operator needs a program, but no program exists yet.",
    "needs_verdict": "The operator needs the verdict of a check, but no check was run.",
    "needs_feedback": "The operator needs the feedback of a check, but no feedback exists.",
    "needs_list": "The operator chooses among several candidates, but no candidates exist.",
    "open_list": "There are several candidates, so an ensemble must first choose one of them.",
    "wrong_kind": "The operator does not support this kind of task.",
}
"""Codes that the tools of this package add, for the documentation."""

_SYNTAX = "NO-WORKFLOW EMPTY EXPECTED CHAR OP-UNKNOWN TWO-WORKFLOWS REST DONE-PLACE COND-NESTED"
SYNTAX: Final = frozenset(f"E-{name}" for name in _SYNTAX.split())
"""Errors of text that is not a workflow. With any other error, only the types do not match.
"""
_MOST_ERRORS: Final = 3
_CODES: Final = {"kind": "wrong_kind", "list": "open_list", "candidates": "needs_list"}


def parses(parsed: Parsed) -> bool:
    """Return whether text matches the grammar, without checking types."""
    return not any(error.code in SYNTAX for error in parsed.errors)


def invalid_workflow(parsed: Parsed, otherwise: str) -> ToolError:
    """Return the error for text that cannot be run, with a corrected workflow if there is one.

    Args:
        parsed: The result of parsing the text, with at least one diagnostic.
        otherwise: The workflow that is shown if the text cannot be corrected.
    """
    errors = parsed.errors or parsed.diagnostics
    first = errors[0]
    message = f"{first.code} at {first.span[0]}: {first.message}"
    hints = [f"Expected {', '.join(first.expected)}."] if first.expected else []
    hints += [f"{each.code} at {each.span[0]}: {each.message}" for each in errors[1:_MOST_ERRORS]]
    dsl = first.suggestion or otherwise
    return ToolError("invalid_workflow", message, " ".join(hints), run_call(dsl))


def instruction_refused(workflow: Node) -> ToolError:
    """Return the error for a workflow with instructions, showing the workflow without them."""
    return ToolError(
        "instruction_refused",
        "Operators take no instructions here.",
        "Write the operators alone.",
        run_call(printed(workflow, instructions=False)),
    )


def run_call(dsl: str) -> dict[str, Any]:
    """Return the tool call that runs a workflow."""
    return {"name": "run_workflow", "arguments": {"dsl": dsl}}


def not_ready(operator: Operator, context: Context, operators: Operators) -> ToolError | None:
    """Return the error for an operator that cannot run on a state, suggesting a possible call.

    The result is None if the operator can run.

    Args:
        operator: The operator that the agent calls.
        context: The state.
        operators: The operators that are available to the agent.
    """
    slot, message = context.lacks(operator)
    if not slot:
        return None
    ready = [each for each in operators.values() if not context.lacks(each)[0]]
    if slot == "candidates":
        ready, arguments = [each for each in ready if not each.inputs], {"copies": 3}
    else:
        ready.sort(key=lambda each: slot not in each.outputs)
        arguments = {}
    example = {"name": ready[0].tool, "arguments": arguments} if ready else None
    return ToolError(_CODES.get(slot, f"needs_{slot}"), message, "", example)
