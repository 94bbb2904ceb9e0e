"""The data set "tiny": fair questions whose answers cannot be learned by heart."""

import hashlib
import itertools
import json
import re
import sqlite3
from collections import defaultdict
from pathlib import Path

import pytest

from sqlgym.database.schema import Schema
from sqlgym.datasets.bundled import dataset_folder

KINDS = {
    "count": r"How many \w+ have \w+ \w+\?",
    "maximum": r"What is the highest ",
    "minimum": r"What is the lowest ",
    "sum": r"What is the total ",
    "above": r"How many \w+ have \w+ above \d+\?",
    "lookup": r"What is the \w+ of \w+\?",
}


WORLDS = ("shop", "school", "lab")


@pytest.fixture(scope="module")
def folder() -> Path:
    return dataset_folder("tiny")


@pytest.fixture(scope="module")
def splits(folder) -> dict[str, list[dict[str, str]]]:
    names = ("train", "dev", "dev-databases", "dev-shapes")
    return {name: json.loads((folder / f"{name}.json").read_bytes()) for name in names}


@pytest.fixture(scope="module")
def golds(folder, splits) -> dict[str, list[tuple[object, ...]]]:
    """The gold rows of every question, by its id."""
    paths = folder.glob("database/*/*.sqlite")
    databases = {path.stem: sqlite3.connect(path) for path in paths}
    rows = {
        entry["id"]: databases[entry["db_id"]].execute(entry["query"]).fetchall()
        for entries in splits.values()
        for entry in entries
    }
    for database in databases.values():
        database.close()
    return rows


def schema(entry: dict[str, str]) -> str:
    return entry["db_id"].rpartition("_")[0]


def test_there_are_enough_worlds_and_questions(folder, splits):
    assert len(list(folder.glob("database/*/*.sqlite"))) == 27 + 6
    assert len(splits["train"]) >= 3000
    assert all(len(splits[name]) >= 400 for name in ("dev", "dev-databases", "dev-shapes"))


def test_train_and_dev_stay_what_they_are(folder):
    """Curves of earlier trainings are compared with those of later ones."""
    files = [folder / "train.json", folder / "dev.json"]
    found = [hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in files]
    assert found == ["4253e5a8033e", "34e3af217ba7"]


def test_no_held_out_question_was_ever_asked_in_training(splits):
    asked = {(schema(entry), entry["question"]) for entry in splits["train"]}
    assert not asked & {(schema(entry), entry["question"]) for entry in splits["dev"]}


def test_the_new_worlds_have_no_word_that_train_has_not(splits):
    """A model from scratch cannot be asked about words that it never saw."""
    words = [
        {word for entry in splits[name] for word in re.findall(r"[a-z]+", entry["question"])}
        for name in ("train", "dev-databases", "dev-shapes")
    ]
    assert words[1] <= words[0]
    assert words[2] <= words[0]


def test_no_table_of_a_new_world_has_a_column_of_the_known_table_of_its_name(folder):
    columns = {True: defaultdict(set), False: defaultdict(set)}
    for file in folder.glob("database/*/*_0.sqlite"):
        for table in Schema.read(file).tables:
            is_known = file.stem.removesuffix("_0") in WORLDS
            columns[is_known][table.name] |= {c.name for c in table.columns} - {"name"}
    assert columns[False].keys() <= columns[True].keys()
    assert not any(columns[False][table] & columns[True][table] for table in columns[False])


def test_each_kind_of_question_is_in_every_split_of_these_shapes(splits):
    for split, kind in itertools.product(("train", "dev", "dev-databases"), KINDS):
        assert any(re.match(KINDS[kind], e["question"]) for e in splits[split]), (split, kind)


def test_ids_are_unique_and_tell_world_and_text(splits):
    entries = [entry for each in splits.values() for entry in each]
    assert len({entry["id"] for entry in entries}) == len(entries)
    for each in splits.values():
        assert len({(e["db_id"], e["question"]) for e in each}) == len(each)
    texts = defaultdict(set)
    for entry in entries:
        world, _, number = entry["id"].rpartition("-")
        assert world == entry["db_id"]
        texts[schema(entry), number].add(entry["question"])
    assert all(len(questions) == 1 for questions in texts.values())


def test_every_gold_is_one_value_and_never_null(golds):
    assert all(len(rows) == 1 and len(rows[0]) == 1 for rows in golds.values())
    assert all(rows[0][0] is not None for rows in golds.values())


def test_knowing_the_commonest_answer_of_each_text_is_not_enough(splits, golds):
    """The best that can be learned by heart, over all fillings, stays well below one half."""
    for entries in (splits["train"], splits["dev"]):  # of others there are too few fillings
        answers = defaultdict(list)
        for entry in entries:
            answers[schema(entry), entry["question"]].append(golds[entry["id"]][0][0])
        right = sum(max(map(found.count, found)) for found in answers.values())
        assert right / len(entries) < 0.45
