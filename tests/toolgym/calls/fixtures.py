"""One message of each family of models: a call, two calls, a call without arguments, a thought.

`call_fixtures.jsonl` holds a line for each way of writing that a family has, made after its public
chat template or the parser of a serving engine (see `source` in `toolgym.calls.formats`). All of
them call the three tools below with the same arguments.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from toolgym.calls import FORMATS
from toolgym.tools import tool, tools_of


class SingerTools:
    """The tools that the fixtures call."""

    @tool
    def describe(self, table_name: str) -> str:
        """List the columns of a table.

        Args:
            table_name: A table.
        """
        return table_name

    @tool
    def query(self, sql: str, limit: int = 10) -> str:
        """Run a query.

        Args:
            sql: One statement.
            limit: Most rows.
        """
        return f"{sql}{limit}"

    @tool
    def tables(self) -> str:
        """List the tables."""
        return ""


TOOLS = tools_of(SingerTools)
SINGER = "singer"
ONE = [("describe", {"table_name": SINGER})]
TWO = [*ONE, ("query", {"sql": 'SELECT "a" FROM t WHERE x < 3', "limit": 5})]
NONE = [("tables", {})]

BY_NAME = {entry.name: entry for entry in FORMATS}


@dataclass(frozen=True)
class Fixture:
    """The messages of one way of writing; empty where it has none of a kind."""

    name: str
    format: str
    families: tuple[str, ...]
    one: str
    none: str
    two: str = ""
    thought: str = ""

    def messages(self) -> dict[str, tuple[str, list[tuple[str, dict[str, object]]]]]:
        """Each message that there is, with the calls that it holds."""
        texts = {"one": (self.one, ONE), "two": (self.two, TWO), "none": (self.none, NONE)}
        texts["thought"] = (self.thought, ONE)
        return {kind: each for kind, each in texts.items() if each[0]}

    def with_value(self, value: str) -> str:
        """The message of one call, with another name of a table, as the family writes texts."""
        if BY_NAME[self.format].arguments in ("JSON", "Python"):
            value = json.dumps(value, ensure_ascii=False)[1:-1]
        if f"'{SINGER}'" in self.one:
            value = value.replace("'", "\\'")
        before, _, behind = self.one.rpartition(SINGER)
        return before + value + behind


def _read() -> list[Fixture]:
    lines = Path(__file__).with_name("call_fixtures.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Fixture(**{**row, "families": tuple(row["families"])}) for row in rows]


FIXTURES = _read()
