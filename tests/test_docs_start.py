"""What the pages say that a user begins with: extras, options, data sets and their numbers."""

import re
import tomllib

import pytest

from sqlgym import load_tasks
from sqlgym.envs.explore import ExploreEnv
from sqlgym.envs.text_to_sql import TextToSQLEnv
from tests.test_docs import IN_WORDS, ROOT, TEXT, options_of, prose, table_under
from toolgym import registration
from tools.interpreters import supported

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DATA = dict(table_under("sql-environments.md", "| `dataset=` | what it holds |"))


def test_every_extra_is_told_and_no_other():
    rows = table_under("installation.md", "| extra | what it brings |")
    told = [name for names, _ in rows for name in re.findall(r"`([\w-]+)`", names)]

    assert sorted(told) == sorted(PROJECT["optional-dependencies"])


def test_the_interpreters_that_are_told_are_those_that_are_supported():
    *most, last = supported()

    assert f"Python {', '.join(most)} or {last}." in prose("installation.md")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {most[0]} to {last};" in readme


def test_every_option_of_the_sql_environments_is_told_with_its_default():
    rows = table_under("sql-environments.md", "| option | meaning |")
    told = {name: words for names, words in rows for name in re.findall(r"`(\w+)`", names)}
    explore, text_to_sql = options_of(ExploreEnv), options_of(TextToSQLEnv)

    assert told.keys() == text_to_sql.keys()
    assert {name for name, words in told.items() if "`TextToSQL` only" in words} == (
        text_to_sql.keys() - explore.keys()
    )
    named = '`"{}"` and `"{}"`'.format(*(explore[name].default for name in ("dataset", "split")))
    assert named in told["dataset"]
    assert f"an episode allows, {explore['step_limit'].default};" in told["step_limit"]
    assert told["unanswerable"].endswith(f"; {explore['unanswerable'].default:g}")


def test_the_tools_of_the_sql_environments_are_theirs():
    rows = table_under("sql-environments.md", "| id | tools | an answer is |")
    for name, tools, _ in rows:
        env = registration.make(name.strip("`"))
        told = re.findall(r"`(\w+)\((\w+)\)`", tools)

        assert [tool for tool, _ in told] == list(env.tools)
        for tool, argument in told:
            assert env.tools[tool].required == (argument,)


@pytest.mark.parametrize("name", ["bundled", "bundled-2", "bundled-3"])
def test_the_numbers_of_a_bundled_set_are_those_of_the_data(name):
    splits = {
        split: load_tasks(name, split)
        for split in ("train", "dev", *(() if name == "bundled" else ("test",)))
    }
    words = DATA[f'`"{name}"`']
    databases = {task.item for tasks in splits.values() for task in tasks}
    total = sum(map(len, splits.values()))

    assert re.search(rf"\b{total:,}\b", words)
    if name == "bundled":
        assert words.startswith(f"{IN_WORDS[len(databases)]} databases")
        assert f"({len(splits['train'])} in `train`, {len(splits['dev'])} in `dev`" in words
    else:
        assert f"half of the {len(databases)} databases" in DATA['`"bundled-2"`']


def test_the_page_on_the_tiny_model_shows_the_picture_that_is_there():
    (target,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", TEXT["tiny-model.md"])

    assert (ROOT / "docs" / target).is_file()
