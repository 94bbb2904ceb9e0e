"""The tools in plain English: what is told of each, and the call that is shown."""

from enum import Enum
from typing import Annotated, Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from toolgym import Code
from toolgym.calls import parse_calls
from toolgym.messages import tools_in_words
from toolgym.tools import ToolSpec, read_spec


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    name: str
    inside: "Place | None" = None


def travel(
    self: Any,
    to: Place,
    how: Literal["foot", "train"],
    days: Annotated[int, Field(ge=2, lt=9)],
    stops: list[str],
    colour: Colour = Colour.RED,
    note: str | None = None,
    items: dict[str, int] | None = None,
    quiet: bool = False,
) -> str:
    """Travel to a place.

    It takes a while.

    Args:
        to: The place.
        how: The means.
        days: How long.
        stops: On the way.
        colour: Of the ticket.
        note: For the guard.
        items: What is taken along.
        quiet: In the quiet car.
    """
    return ""


def rest(self: Any) -> str:
    """Rest a while."""
    return ""


TRAVEL, REST = read_spec(travel), read_spec(rest, terminal=True)


def example_in(text: str) -> str:
    return text[text.index("in this form:\n") : text.index("\nOne call")].partition("\n")[2]


def test_every_argument_is_told_with_its_type_and_whether_it_is_required() -> None:
    assert tools_in_words([TRAVEL, REST]) == (
        "You have these tools:\n"
        "\n"
        "travel: Travel to a place.\n"
        "\n"
        "  It takes a while.\n"
        "  Arguments:\n"
        '  - to ({"properties": {"name": {"type": "string"}, "inside": {"anyOf": [{"$ref":'
        ' "#/$defs/Place"}, {"type": "null"}], "default": null}}, "required": ["name"], "type":'
        ' "object"}, required): The place.\n'
        '  - how (one of "foot", "train", required): The means.\n'
        "  - days (integer of at least 2 and below 9, required): How long.\n"
        "  - stops (list of string, required): On the way.\n"
        '  - colour (one of "red", "blue", optional; "red" if left out): Of the ticket.\n'
        "  - note (string, optional): For the guard.\n"
        "  - items (object, optional): What is taken along.\n"
        "  - quiet (true or false, optional; false if left out): In the quiet car.\n"
        "\n"
        "rest: Rest a while.\n"
        "  It takes no arguments.\n"
        "\n"
        "To call a tool, write its name and its arguments in this form:\n"
        "<tool_call>\n"
        '{"name": "travel", "arguments": {"to": {"name": "..."}, "how": "foot", "days": 2,'
        ' "stops": ["..."]}}\n'
        "</tool_call>\n"
        "One call in a message is enough: write it, end your message, and read the result."
        " A call of rest ends the episode."
    )


TYPES: list[Any] = [
    *(str, float, bool, list[list[str]], dict[str, int], Place, Colour, str | None, int | str),
    *(Literal[3, "x"], Annotated[int, Field(gt=4, le=7)], Any, tuple[int, str], list[Place]),
    *(Annotated[str, Code("sql")], Annotated[list[int], Field(min_length=2)]),
]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(TYPES), st.booleans()),
        max_size=5,
        unique_by=lambda each: str(each),
    )
)
def test_whatever_the_types_the_example_is_a_call_without_an_error(fields: list[Any]) -> None:
    chosen: dict[str, Any] = {
        f"key_{number}": (kind, Field(... if needed else None, description="A value."))
        for number, (kind, needed) in enumerate(fields)
    }
    spec = ToolSpec("made", "Do it.", create_model("made_arguments", **chosen))

    text = tools_in_words([spec])

    (call,) = parse_calls(example_in(text), [spec])
    assert (call.name, call.error) == ("made", None)
    assert all(f"  - {key} (" in text for key in chosen)
