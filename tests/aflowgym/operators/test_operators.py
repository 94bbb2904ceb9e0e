import dataclasses
import itertools
import pickle
import re
import textwrap
from pathlib import Path

import pytest

from aflowgym import parse
from aflowgym.dsl import CODES, GRAMMAR
from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.operator import SLOTS, Operator, Operators

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
        "writes": ("verdict", "feedback"),
        "needs": ("solution",),
        "aliases": ("Again",),
    }
    return Operator(**{**given, **changes})


def test_a_prompt_shows_the_problem_the_instruction_and_every_input():
    for name in TEN:
        operator = OPERATORS[name]
        shown = set(re.findall(r"{(\w+)}", operator.prompt)) - {"form"}

        # Where there is a program, it is the solution.
        hidden = {"solution"} if "code" in operator.needs else set()
        assert shown == {"problem", "instruction", *operator.inputs} - hidden, name
        assert set(operator.writes) <= SLOTS.keys(), name


def test_every_spelling_of_a_name_is_found():
    for name in TEN:
        for spelling in (name, *OPERATORS[name].aliases):
            for written in (spelling, spelling.upper(), "_".join(spelling), spelling.lower()):
                assert OPERATORS.resolve(written) == name, name


def test_a_new_operator_is_understood_and_typed_by_its_declaration():
    mine = OPERATORS.copy()
    mine.register(second_look())

    assert str(parse("Custom -> again ? Revise : done", operators=mine).workflow) == (
        "Custom -> SecondLook ? Revise : done"
    )
    assert parse("SecondLook", operators=mine).errors[0].code == "E-NEEDS-SOLUTION"
    assert parse("Custom -> SecondLook").errors[0].code == "E-OP-UNKNOWN"


@pytest.mark.parametrize("slot", ["verdict", "feedback"])
def test_an_operator_can_need_any_slot(slot):
    mine = OPERATORS.copy()
    mine.register(second_look(needs=(slot,), prompt="{problem}", writes=("solution",)))
    parsed = parse("Custom -> SecondLook", operators=mine)

    assert parsed.errors[0].code == f"E-NEEDS-{slot.upper()}"
    assert parsed.errors[0].suggestion == "Custom -> Review -> SecondLook"


def test_an_operator_can_be_for_one_kind_of_task():
    mine = OPERATORS.copy()
    mine.register(second_look(kinds=("qa",)))

    assert parse("Custom -> SecondLook", operators=mine, kind="qa").workflow is not None
    refused = parse("Custom -> SecondLook", operators=mine, kind="math")
    assert [found.code for found in refused.diagnostics] == ["E-KIND"]
    assert refused.diagnostics[0].suggestion == "Custom -> Review"


@pytest.mark.parametrize("changes", [{"name": "custom"}, {"aliases": ("Critique",)}])
def test_no_spelling_names_two_operators(changes):
    mine = OPERATORS.copy()
    with pytest.raises(ValueError, match="already names"):
        mine.register(second_look(**changes))
    assert list(mine) == TEN


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "two words"}, "letters and digits"),
        ({"name": "Done"}, "ends a workflow"),
        ({"writes": ("answer",)}, "no slot 'answer'"),
        ({"kinds": ("sql",)}, "no kind 'sql'"),
        ({"calls": (3, 1)}, "least, most"),
        ({"prompt": "{problem} {candidates}"}, "asks for"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        second_look(**changes)


def test_a_registry_of_one_needs_none_of_the_ten():
    one = Operators((dataclasses.replace(OPERATORS["Custom"], name="Solve", aliases=()),))

    assert str(parse("solve * 2", operators=one).workflow) == "Solve * 2"
    assert parse("Custom", operators=one).errors[0].suggestion == "Solve"


def test_a_declaration_survives_a_pickle():
    assert pickle.loads(pickle.dumps(OPERATORS["Test"])) == OPERATORS["Test"]


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
            map(cells, (operator.aliases, operator.needs, operator.writes, operator.keeps))
        )
        calls = f"{least}" if least == most else f"{least} to {most}"
        expected.append(f"| `{operator.name}` | {slots} | {calls} |")

    assert (
        rows_of_the_page("| operator | other names | needs | fills | keeps | calls |") == expected
    )


def test_the_page_on_the_language_has_every_code_with_its_meaning():
    expected = [f"| `{code}` | {meaning} |" for code, meaning in CODES.items()]

    assert rows_of_the_page("| code | meaning |") == expected


def test_the_grammar_on_the_page_is_that_of_the_parser():
    assert textwrap.indent(GRAMMAR, "    ") in PAGE.read_text(encoding="utf-8")
