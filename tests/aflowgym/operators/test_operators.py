"""Operators by name, their declarations, and those of a user."""

import itertools
import re
import textwrap
from pathlib import Path

import pytest

from aflowgym import parse
from aflowgym.dsl import GRAMMAR
from aflowgym.operators import OPERATORS, Operator, Operators
from aflowgym.operators.operator import SLOTS
from toolgym.errors import ConfigurationError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "workflow-language.md"
TEN = [
    "Custom", "AnswerGenerate", "CustomCodeGenerate", "Programmer", "Test", "Format", "Review",
    "Revise", "ScEnsemble", "MdEnsemble",
]  # fmt: skip


def second_look(**changes):
    given = {
        "name": "SecondLook",
        "summary": "Judge the solution once more.",
        "prompt": "Look again.\n{instruction}\n{problem}\n{solution}",
        "outputs": ("verdict", "feedback"),
        "inputs": ("solution",),
        "aliases": ("Again",),
    }
    return Operator(**{**given, **changes})


VOTE = second_look(name="Look3", aliases=())


def test_a_prompt_shows_the_problem_the_instruction_and_every_slot():
    assert list(OPERATORS) == TEN
    for name, operator in OPERATORS.items():
        shown = set(re.findall(r"{(\w+)}", operator.prompt)) - {"form"}

        # Where there is a program, it is the solution.
        hidden = {"solution"} if "code" in operator.inputs else set()
        assert shown == {"problem", "instruction", *operator.shown} - hidden, name
        assert set(operator.outputs) <= SLOTS.keys(), name


def test_every_spelling_of_a_name_is_found():
    for name in TEN:
        for spelling in (name, *OPERATORS[name].aliases):
            for written in (spelling, spelling.upper(), "_".join(spelling), spelling.lower()):
                assert OPERATORS.resolve(written) == name, name


def test_an_operator_of_a_user_is_parsed_and_typed_by_its_declaration():
    mine = OPERATORS.of([*OPERATORS.values(), second_look()])

    assert str(parse("Custom -> again ? Revise : done", operators=mine).workflow) == (
        "Custom -> SecondLook ? Revise : done"
    )
    assert parse("SecondLook", operators=mine).errors[0].code == "E-NEEDS-SOLUTION"
    assert parse("Custom -> SecondLook").errors[0].code == "E-OP-UNKNOWN"


@pytest.mark.parametrize("slot", ["verdict", "feedback"])
def test_an_operator_can_need_any_slot(slot):
    needy = second_look(inputs=(slot,), prompt="{problem}", outputs=("solution",))
    parsed = parse("Custom -> SecondLook", operators=Operators([*OPERATORS.values(), needy]))

    assert parsed.errors[0].code == f"E-NEEDS-{slot.upper()}"
    assert parsed.errors[0].suggestion == "Custom -> Review -> SecondLook"


def test_an_operator_can_be_for_one_kind_of_task():
    mine = Operators([*OPERATORS.values(), second_look(kinds=("qa",))])

    assert parse("Custom -> SecondLook", operators=mine, kind="qa").workflow is not None
    refused = parse("Custom -> SecondLook", operators=mine, kind="math")
    assert [found.code for found in refused.diagnostics] == ["E-KIND"]
    assert refused.diagnostics[0].suggestion == "Custom -> Review"


def test_operators_are_chosen_by_name_by_place_and_as_objects():
    chosen = OPERATORS.of(["custom", f"{__name__}:VOTE", second_look()])

    assert list(chosen) == ["Custom", "Look3", "SecondLook"]
    assert OPERATORS.of(None) is OPERATORS.of(OPERATORS) is OPERATORS
    assert parse("Review", operators=chosen).errors[0].code == "E-OP-UNKNOWN"


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        ("Custom", "must be a list"),
        ([], "name at least one"),
        (["Custum"], "did you mean Custom"),
        ([7], "Operator objects or names"),
        (["no_such_module:X"], "cannot be loaded"),
        (["aflowgym.operators:NONE"], "cannot be loaded"),
        (["aflowgym.operators:Context"], "Operator objects or names"),
        (["Custom", second_look(name="custom")], "already names"),
    ],
)
def test_a_list_of_operators_that_is_refused_has_a_next_step(operators, message):
    with pytest.raises(ConfigurationError, match=message):
        OPERATORS.of(operators)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "two words"}, "letters and digits"),
        ({"name": "Done"}, "word of the language"),
        ({"aliases": "Again"}, "must be a tuple"),
        ({"inputs": "solution"}, "pass a tuple"),
        ({"outputs": ("answer",)}, "outputs must be names"),
        ({"outputs": ()}, "outputs must be names"),
        ({"calls": (3, 1)}, "minimum, maximum"),
        ({"calls": 3}, "minimum, maximum"),
        ({"prompt": ""}, "a function as run"),
        ({"prompt": "{problem} {candidates}"}, "'candidates', which is not"),
        ({"prompt": '{problem} Write {"answer": 1}.'}, "double other braces"),
        ({"prompt": "{problem} {"}, "double other braces"),
    ],
)
def test_a_declaration_that_is_refused_has_a_next_step(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        second_look(**changes)


def rows_of_the_page(head):
    text = PAGE.read_text(encoding="utf-8").split(f"{head}\n", 1)[1]
    lines = text.splitlines()[1:]
    return list(itertools.takewhile(lambda line: line.startswith("|"), lines))


def test_the_page_on_the_language_has_every_operator_as_it_is_declared():
    def cells(names):
        return ", ".join(f"`{name}`" for name in names)

    expected = []
    for operator in OPERATORS.values():
        least, most = operator.calls
        slots = " | ".join(
            map(cells, (operator.aliases, operator.inputs, operator.outputs, operator.keeps))
        )
        calls = f"{least}" if least == most else f"{least} to {most}"
        expected.append(f"| `{operator.name}` | {slots} | {calls} |")

    assert (
        rows_of_the_page("| operator | other names | needs | fills | keeps | calls |") == expected
    )


def test_the_grammar_on_the_page_is_that_of_the_parser():
    assert textwrap.indent(GRAMMAR, "    ") in PAGE.read_text(encoding="utf-8")
