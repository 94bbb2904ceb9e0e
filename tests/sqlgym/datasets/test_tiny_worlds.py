"""The generated worlds: fair questions, no answer to be known by heart, nothing left to chance."""

import hashlib
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from sqlgym.datasets import tiny_worlds

KINDS = {
    "count": r"How many \w+ have \w+ \w+\?",
    "maximum": r"What is the highest ",
    "minimum": r"What is the lowest ",
    "sum": r"What is the total ",
    "above": r"How many \w+ have \w+ above \d+\?",
    "lookup": r"What is the \w+ of \w+\?",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_worlds.build_tiny(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def splits(folder) -> dict[str, list[dict[str, str]]]:
    files = {"train": "train_spider.json", "dev": "dev.json"}
    files |= {name: f"{name}.json" for name in ("dev-databases", "dev-shapes")}
    return {split: json.loads((folder / name).read_bytes()) for split, name in files.items()}


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
    """Seeds and curves of earlier trainings are compared with later ones."""
    files = [folder / "train_spider.json", folder / "dev.json"]
    found = [hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in files]
    assert found == ["61d48e89fc36", "cc16e2bef491"]


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


def test_no_table_of_a_new_world_has_a_column_of_the_known_table_of_its_name():
    known = {name: kind for world in tiny_worlds.WORLDS.values() for name, kind in world.items()}
    for world in tiny_worlds.NEW_WORLDS.values():
        for name, kind in world.items():
            columns = {kind.category, *kind.numbers}
            assert not columns & {known[name].category, *known[name].numbers}


def test_most_questions_are_asked_of_every_filling(splits):
    """The others are left out where their condition changes nothing."""
    fillings = defaultdict(set)
    for entry in [*splits["train"], *splits["dev"]]:
        fillings[schema(entry), entry["question"]].add(entry["db_id"])
    whole = [names for names in fillings.values() if len(names) == tiny_worlds.SEEDS]
    assert len(whole) / len(fillings) > 0.7


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


@pytest.mark.integration
def test_another_process_with_another_hash_seed_generates_the_same_bytes(folder, tmp_path):
    code = (
        "import sys; from sqlgym.datasets.tiny_worlds import build_tiny; from pathlib import Path\n"
    )
    code += "build_tiny(Path(sys.argv[1]))"
    root = Path(tiny_worlds.__file__).parents[2]
    environment = os.environ | {"PYTHONHASHSEED": "4321"}
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, env=environment, cwd=root)

    other = tmp_path / "sql" / folder.name
    files = sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(other) for p in other.rglob("*") if p.is_file())
    assert all((folder / name).read_bytes() == (other / name).read_bytes() for name in files)
