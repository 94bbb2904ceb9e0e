"""The tables of docs/backends.md say what the code has, no less and no more."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

from aflowgym.backends.transformers import TransformersBackend
from aflowgym.operators.catalogue import OPERATORS
from aflowgym.operators.prompts import FORMS, PROMPTS, fields_of, fill
from aflowgym.tasks.task import KINDS
from toolgym.chat import CHAT_FAULTS, ChatSettings

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "backends.md").read_text("utf-8")


def rows_under(head: str) -> list[list[str]]:
    table = PAGE.split(head, 1)[1].split("\n\n", 1)[0]
    lines = table.strip().splitlines()[1:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_every_field_of_the_settings_is_there_with_its_default():
    told = {name: default for name, default, _ in rows_under("| field | default | meaning |")}
    known = {each.name: each.default for each in dataclasses.fields(ChatSettings)}

    assert told.keys() == known.keys() - {"model"}
    for name, default in told.items():
        if default:
            value = known[name]
            assert default == (str(value).lower() if isinstance(value, bool) else f"{value:g}"
                               if isinstance(value, float) else str(value))  # fmt: skip


def test_every_fault_is_there_with_its_meaning():
    told = rows_under("| code | what happened | tried again |")

    assert [(code, what.replace("`", ""), again) for code, what, again in told] == [
        (code, kind.meaning.replace("`", ""), "yes" if kind.passing else "no")
        for code, kind in CHAT_FAULTS.items()
    ]


def test_every_operator_is_there():
    told = rows_under("| operator | it is shown | it is asked for | read from the reply |")

    assert [row[0] for row in told] == list(OPERATORS) == list(PROMPTS)


def test_the_options_of_a_model_in_this_process_are_there():
    told = {name: default for name, default, _ in rows_under("| option | default | meaning |")}
    known = inspect.signature(TransformersBackend.__init__).parameters

    assert all(str(known[name].default) == default for name, default in told.items())
    options = {each.name for each in known.values() if each.kind is each.KEYWORD_ONLY}
    assert told.keys() == options - {"sandbox"}


def test_there_is_a_form_of_answer_for_each_kind_of_task():
    assert tuple(FORMS) == KINDS


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_leaves_out_what_does_not_exist_and_shows_what_does(name):
    from aflowgym import load_tasks

    task = load_tasks("bundled", "train")[0]
    slots = [field for field in fields_of(PROMPTS[name]) if field not in ("problem", "form")]
    empty = fill(PROMPTS[name], task, dict.fromkeys(slots, ""))
    full = fill(PROMPTS[name], task, {slot: f"<{slot} {{x}}>" for slot in slots})

    assert task.question in empty
    assert "\n\n\n" not in empty
    assert not re.search(r":\n*$", empty)
    assert all(f"<{slot} {{x}}>" in full for slot in slots)
    assert not re.search(r"\{\w+\}", empty)
