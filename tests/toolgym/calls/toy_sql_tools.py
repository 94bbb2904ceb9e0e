"""The tools of the parser's tests: the shape of a SQL environment, without a database."""

from typing import Annotated, Any

from toolgym.tools import Code, tool, tools_of


class ToySql:
    """Tools only; nothing here is ever executed."""

    @tool
    def describe(self, table_name: str) -> str:
        """List the columns of a table.

        Args:
            table_name: A table.
        """
        return table_name

    @tool
    def sample(self, table_name: str) -> str:
        """Show some rows of a table.

        Args:
            table_name: A table.
        """
        return table_name

    @tool
    def query(self, sql: Annotated[str, Code("sql")]) -> str:
        """Run a query.

        Args:
            sql: One statement.
        """
        return sql

    @tool(terminal=True, aliases=("final_answer", "submit"))
    def answer(self, value: str | int | float | bool | list) -> str:  # type: ignore[type-arg]
        """Answer the question.

        Args:
            value: The answer.
        """
        return str(value)


class ToyTyped:
    """Arguments of other types, with defaults."""

    @tool
    def turn(self, dial: int, to: int = 0, note: str | None = None) -> str:
        """Turn a dial.

        Args:
            dial: Which.
            to: Where to.
            note: Why.
        """
        return f"{dial}{to}{note}"

    @tool
    def join(self, parts: list[str], sep: str = ",") -> str:
        """Join texts.

        Args:
            parts: The texts.
            sep: What stands between.
        """
        return sep.join(parts)

    @tool
    def look(self) -> str:
        """Look around."""
        return ""


class ToyPlain:
    """Arguments of the types that the others lack."""

    @tool
    def plan(
        self,
        steps: list[dict[str, Any]],
        options: dict[str, Any] | None = None,
        ratio: float = 0.5,
        dry: bool = False,
    ) -> str:
        """Make a plan.

        Args:
            steps: Objects.
            options: An object.
            ratio: A number.
            dry: Whether nothing is done.
        """
        return f"{steps}{options}{ratio}{dry}"

    @tool
    def run_code(self, code: Annotated[str, Code("python")]) -> str:
        """Run code.

        Args:
            code: Python.
        """
        return code


TOOLS = tools_of(ToySql)
TYPED = tools_of(ToyTyped)
PLAIN = tools_of(ToyPlain)
