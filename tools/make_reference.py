"""Generate the reference page from tables in the code."""

import ast
import dataclasses
import inspect
import itertools
import textwrap
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

import toolgym.episode
import toolgym.rewards
from aflowgym.dsl import CODES
from aflowgym.execution.errors import WORKFLOW_ERRORS
from aflowgym.operators import OPERATORS
from aflowgym.operators.trace import RUN_CODES
from sqlgym.database import limits
from sqlgym.database.diagnosis import SQL_ERRORS
from sqlgym.datasets.load import REFUSALS
from toolgym import registration
from toolgym.calls import CALL_ERRORS, REPAIRS
from toolgym.rewards import PARTS, RewardConfig

HEAD = """\
# Reference

This page lists the tools, keys, codes and limits of the environments. To change it, edit the code
and run `python tools/make_docs.py`.
"""

OPERATOR_TOOLS = frozenset(operator.tool for operator in OPERATORS.values())


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table; vertical bars in cells are escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(c.replace('|', chr(92) + '|') for c in r)} |" for r in lines)


def field_notes(cls: type) -> dict[str, str]:
    """Return the docstrings under the annotated fields of a class."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    notes = {}
    for field, note in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr):
            text = ast.literal_eval(note.value)
            notes[ast.unparse(field.target)] = " ".join(text.split())
    return notes


def environments() -> str:
    """Return the environments with their tools."""
    parts = []
    ours = [i for i in registration.tool_env_ids() if i.startswith(("sqlgym/", "aflowgym/"))]
    for env_id in ours:  # other packages may have registered environments too
        env = registration.make(env_id)
        purpose = " ".join((type(env).__doc__ or "").split("\n\n")[0].split())
        rows, operators = [], []
        for name, spec in env.tools.items():
            call = f"`{name}({_arguments(spec.parameters)})`"
            if name in OPERATOR_TOOLS:
                operators.append(call)
            else:
                rows.append((call, _first_sentence(spec.description)))
        if operators:
            what = "Runs the [operator](workflow-language.md#operators) of the same name."
            rows.insert(0, (", ".join(operators), what))
        parts.append(f"### {env_id}\n\n{purpose}\n\n{table(('tool', 'description'), rows)}\n")
    return "\n".join(parts)


def _first_sentence(text: str) -> str:
    """Return the first sentence of a tool's description, which a model reads in full.

    >>> _first_sentence("Show some rows. Takes 1 call.\\n\\nMore.")
    'Show some rows.'
    """
    return f"{text.splitlines()[0].split('. ')[0].removesuffix('.')}."


def _arguments(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {_type(s)}" for name, s in parameters["properties"].items())


def _type(schema: dict[str, Any]) -> str:
    options = schema.get("anyOf")
    return " | ".join(_type(o) for o in options) if options else str(schema.get("type", "any"))


def info_keys() -> str:
    """Return the table of the keys of `info`."""
    told = field_notes(toolgym.episode.Info)
    rows = [(f"`{key}`", note) for key, note in told.items()]
    return table(("key", "meaning"), rows)


def weights(model: type[BaseModel]) -> str:
    """Return the table of the weights of the reward."""
    notes = field_notes(model)
    rows = [
        (f"`{name}`", f"{info.default:g}", notes[name]) for name, info in model.model_fields.items()
    ]
    return table(("weight", "default", "meaning"), rows)


def repairs() -> str:
    """Return the table of repairs with examples."""
    rows = [(f"`{r.code}`", r.does, f"`{r.before!r}`") for r in REPAIRS.values()]
    return table(("code", "repair", "example of a message"), rows)


def codes(meanings: dict[str, str]) -> str:
    """Return a table of codes."""
    return table(("code", "meaning"), [(f"`{code}`", text) for code, text in meanings.items()])


def sql_limits() -> str:
    """Return the table of the limits of one SQL statement."""
    notes = field_notes(limits.Limits)
    rows = [
        (f"`{f.name}`", f"{f.default:,}" if f.default else "", notes[f.name])
        for f in dataclasses.fields(limits.Limits)
    ]
    return table(("limit", "default", "meaning"), rows)


def reference_page() -> str:
    """Return the text of `docs/reference.md`."""
    parts = ", ".join(f"`{part}`" for part in PARTS)
    language_errors = {code: text for code, text in CODES.items() if code.startswith("E-")}
    sections = [
        HEAD,
        f"## Environments\n\n{environments()}",
        f"## Keys of `info`\n\n{info_keys()}\n",
        f"## Weights of the reward\n\n{weights(RewardConfig)}\n",
        f'The keys of `info["reward_parts"]` are {parts}.\n',
        f"## Repairs\n\n{repairs()}\n",
        f"## Call errors\n\n{codes(CALL_ERRORS)}\n",
        f"## SQL errors\n\n{codes(SQL_ERRORS)}\n",
        f"## Errors of workflow tools\n\n{codes(WORKFLOW_ERRORS)}\n",
        f"## Errors of the workflow language\n\n{codes(language_errors)}\n",
        f"## Failures of a workflow\n\n{codes(RUN_CODES)}\n",
        f"## Limits of one SQL statement\n\n{sql_limits()}\n",
        f"## Reasons for refused SQL tasks\n\n{codes(REFUSALS)}\n",
    ]
    return "\n".join(sections)
