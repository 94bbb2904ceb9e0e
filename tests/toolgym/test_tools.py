"""One typed method is the only source of a tool."""

from typing import Annotated, Literal

import pytest

from toolgym import Code, ToolSpec, tool
from toolgym.tools import specs_from, tools_of


class Room:
    @tool
    def look(self, direction: Literal["north", "south"], far: bool = False) -> str:
        """Look around.

        More about looking.

        Args:
            direction: Where to look,
                over two lines.
            far: Use the telescope.

        Returns:
            What is there.
        """
        return direction

    @tool(terminal=True, aliases=("exit",))
    def leave(self, title: Annotated[str, Code("sql")], value: int | str | list[int]) -> str:
        """Leave.

        Args:
            title: A title.
            value: A value.
        """
        return title


class Hall(Room):
    @tool
    def look(self) -> str:
        """Look again."""
        return ""


def test_signature_and_docstring_give_the_schema_that_a_model_is_shown():
    assert tools_of(Room)["look"].schema() == {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look around.\n\nMore about looking.",
            "parameters": {
                "type": "object",
                "properties": {
                    "direction": {
                        "type": "string",
                        "enum": ["north", "south"],
                        "description": "Where to look, over two lines.",
                    },
                    "far": {
                        "type": "boolean",
                        "default": False,
                        "description": "Use the telescope.",
                    },
                },
                "required": ["direction"],
                "additionalProperties": False,
            },
        },
    }


def test_a_property_called_title_stays_when_generated_titles_go():
    assert list(tools_of(Room)["leave"].parameters["properties"]) == ["title", "value"]


def test_marks_aliases_and_overriding():
    spec = tools_of(Room)["leave"]
    assert spec.terminal
    assert spec.aliases == ("exit",)
    assert spec.code_argument("title") == "sql"
    assert spec.code_argument("value") is None
    assert spec.required == ("title", "value")
    assert tools_of(Hall)["look"].description == "Look again."
    assert tools_of(Hall)["look"].parameters["properties"] == {}


def define(source: str) -> None:
    exec("from toolgym import tool\nclass Bad:\n" + source, {})


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("  @tool\n  def go(self): pass", "'go' needs a docstring"),
        ("  @tool\n  def go(self, x): 'Go.'", "argument 'x' needs a type"),
        ("  @tool\n  def go(self, x: int): 'Go.'", "argument 'x' needs an Args line"),
        ("  @tool\n  def go(self, *x: int): 'Go.'", r"\*x has no schema"),
        (
            "  @tool\n  def go(self): '''Go.\n\n      Args:\n          y: No.\n      '''",
            r"documents \['y'\], which the signature lacks",
        ),
    ],
)
def test_a_tool_that_cannot_be_told_to_a_model_fails_when_it_is_defined(source, words):
    with pytest.raises(TypeError, match=words):
        define(source)


def test_specs_come_from_openai_schemas_too():
    specs = specs_from([tools_of(Room)["look"].schema(), tools_of(Room)["leave"]])
    assert list(specs) == ["look", "leave"]
    read = specs["look"]
    assert isinstance(read, ToolSpec)
    assert read.required == ("direction",)
    assert read.arguments.model_validate({"direction": "north"})
    with pytest.raises(TypeError, match="not a tool: 7"):
        specs_from([7])
