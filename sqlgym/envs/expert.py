"""Experts that use the gold SQL: they describe its tables, run the SQL, and read the answer.

The expert of `ExploreEnv` reads the answer only from the text of the last observation, as an agent
would, so a task on which it fails is faulty. The experts write strings as they appear in
observations, with control tokens escaped. Their demonstrations therefore contain no control tokens,
and a model can copy the strings.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from sqlglot import expressions as exp

from sqlgym.database.parsing import parse
from sqlgym.database.render import parse_rendered
from sqlgym.tasks.task import SqlTask
from toolgym.calls import ToolCall
from toolgym.env import ToolEnv
from toolgym.episode import without_notice
from toolgym.sanitize import change_texts, escape_control_tokens, unescape_control_tokens


def explore(env: ToolEnv[SqlTask]) -> Generator[ToolCall, str, None]:
    """Play the current episode of an `ExploreEnv`. The answer is read from the observation.

    Yields:
        The next call; send the observation back.
    """
    yield from _look_around(env)
    if not env.task.answerable:
        yield ToolCall("cannot_answer", {})
        return
    observation = yield _call("query", sql=env.task.gold_sql)
    shown = unescape_control_tokens(without_notice(observation))
    yield _call("answer", value=read_answer(shown))


def write_sql(env: ToolEnv[SqlTask]) -> Generator[ToolCall, str, None]:
    """Play the current episode of a `TextToSQLEnv`: run the gold SQL, then submit it.

    Tools that the environment does not offer are skipped.

    Yields:
        The next call; send the observation back.
    """
    yield from _look_around(env)
    if not env.task.answerable:
        yield ToolCall("cannot_answer", {})
        return
    if "query" in env.tools:
        yield _call("query", sql=env.task.gold_sql)
    yield _call("answer", sql=env.task.gold_sql)


def _look_around(env: ToolEnv[SqlTask]) -> Generator[ToolCall, str, None]:
    """Describe the tables of the gold SQL, as many as the step limit allows, and sample the first
    one.
    """
    tables = tables_of(env.task.gold_sql) if env.task.answerable else [""]  # "" lists all tables
    # The query needs a step, and one step stays unused, because the last one ends the episode.
    spare = env.episode.steps_left - 2
    if "describe" in env.tools:
        for table in tables[: max(spare, 0)]:
            yield _call("describe", table_name=table)
    if "sample" in env.tools and len(tables) > 1 and spare > len(tables):
        yield _call("sample", table_name=tables[0])


def _call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name, change_texts(arguments, escape_control_tokens))


def tables_of(sql: str) -> list[str]:
    """Return the tables that a query names, without duplicates, in order of appearance."""
    tree = parse(sql)
    defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    names: dict[str, str] = {}
    for table in tree.find_all(exp.Table, bfs=False):
        if table.name.lower() not in defined:
            names.setdefault(table.name.lower(), table.name)
    return list(names.values())


def read_answer(observation: str) -> Any:
    """Return the value that a rendered query result shows, in the form that `answer` accepts.

    Returns:
        A number or string for one cell, a list for one column or one row, and otherwise a list of
        lists.
    """
    rows = [[_value(cell) for cell in row] for row in parse_rendered(observation)]
    if len(rows) == 1:
        return rows[0][0] if len(rows[0]) == 1 else rows[0]
    if rows and len(rows[0]) == 1:
        return [row[0] for row in rows]
    return rows


def _value(cell: str | None) -> Any:
    """Return a cell as a JSON value. Text that looks like a number is converted to a number."""
    if cell is None:
        return None
    for kind in (int, float):
        try:
            number = kind(cell)
        except ValueError:
            continue
        # Only if it prints as it was written: "007" and "1e5" remain text.
        return number if str(number) == cell else cell
    return cell
