"""What is called unseen is not in `train`: of the named sets, and of a user's own.

What is shared is looked up here by other code than that which chose the tasks: SQL as sqlglot
writes it, its literals replaced in the tree.
"""

import functools
import itertools
import json
import os
import re
import shutil
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from sqlgym import DATA_SETS, load_tasks
from sqlgym.datasets.bundled import dataset_folder
from sqlgym.datasets.family import SqlTaskFamily
from tests.sweeps import sweep
from toolgym import ConfigurationError, registration
from toolgym.unseen import kinds_unseen

FAMILY = SqlTaskFamily()
NAMED = itertools.product(DATA_SETS, FAMILY.kinds)


@functools.cache
def forms(sql):
    """The SQL as sqlglot writes it, and the same without its literals."""
    tree = sqlglot.parse_one(sql, dialect="sqlite")
    options = {"dialect": "sqlite", "normalize": True, "comments": False}
    whole = tree.sql(**options)
    for literal in list(tree.find_all(exp.Literal)):
        literal.replace(exp.Placeholder())
    bare = re.sub(r"\(\?(?:, \?)+\)", "(?)", tree.sql(**options))
    return whole, bare.replace("-?", "?")


def written(task):
    return forms(task.gold_sql)[0]


def shape(task):
    return forms(task.gold_sql)[1]


def asked(task):
    return " ".join(re.findall(r"\w+|[^\w\s]", task.question.casefold())).rstrip(" ?.!")


KEYS = {
    "tasks": (lambda task: (task.item, asked(task)), lambda task: (task.item, written(task))),
    "databases": (lambda task: task.item,),
    "shapes": (shape,),
}


def shared(tasks, training, kind):
    """What two sets have in common, by any of the kind's keys."""
    return [
        found
        for key in KEYS[kind]
        for found in {key(task) for task in tasks} & {key(task) for task in training}
    ]


# The sets that have a name ------------------------------------------------------------------------


@pytest.mark.parametrize("case", sweep(NAMED, ["bundled-databases", "tiny-databases"], "-".join))
def test_what_is_called_unseen_of_a_named_set_is_not_in_train(case):
    name, kind = case
    for base in (split for split in FAMILY.splits(name) if split in ("dev", "test")):
        training = load_tasks(name, "train")
        tasks = load_tasks(name, f"{base}-{kind}")
        assert shared(tasks, training, kind) == []
        if kind != "databases":  # a task is asked of its own database
            assert shared(tasks, training, "tasks") == []


def test_the_environments_take_the_names_of_these_splits():
    for env_id in ("sqlgym/Explore-v0", "sqlgym/TextToSQL-v0"):
        env = registration.make(env_id, dataset="tiny", split="dev-databases")
        assert env.reset(seed=0)[0]
        assert env.tasks is load_tasks("tiny", "dev-databases")


# A user's own -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Questions that `dev` shares with `train` in one respect, in another, and in none."""
    place = tmp_path_factory.mktemp("own")
    built = dataset_folder("bundled")
    for name in ("seed_bank", "observatory"):
        (place / "database" / name).mkdir(parents=True)
        shutil.copy(built / "database" / name / f"{name}.sqlite", place / "database" / name)

    def entry(question, query, db_id="seed_bank"):
        return {"db_id": db_id, "question": question, "query": query}

    train = [
        entry("How many vaults are there?", "SELECT count(*) FROM vaults"),
        entry("Which species has number 3?", "SELECT * FROM species WHERE species_id = 3"),
        entry("Both?", "SELECT * FROM species WHERE species_id > 3 AND species_id IN (5, 6)"),
    ]
    dev = [
        entry("how many  vaults are there", "SELECT count(*) FROM vaults WHERE 1 = 1"),  # asked
        entry("Their number?", "select COUNT(*) from vaults"),  # the same SQL
        entry("Both, then?", "SELECT * FROM species WHERE species_id IN (6, 5) AND species_id > 3"),
        entry("Which has 4?", "SELECT * FROM species WHERE species_id = 4"),  # of a known shape
        entry("Three of them?", "SELECT * FROM species WHERE species_id > 1"
              " AND species_id IN (7, 8, 9)"),  # of a known shape
        entry("All of them?", "SELECT * FROM vaults"),  # unseen but for the database
        entry("How many vaults are there?", "SELECT count(*) FROM telescopes", "observatory"),
        {"db_id": "seed_bank", "question": "How many?"},  # cannot be used
    ]  # fmt: skip
    for name, entries in (("train", train), ("dev", dev)):
        (place / f"{name}.json").write_text(json.dumps(entries))
        lines = "".join(json.dumps(each) + "\n" for each in entries)
        (place / "lines").mkdir(exist_ok=True)
        (place / "lines" / f"{name}.jsonl").write_text(lines)
    (place / "rows.jsonl").write_text(lines)
    return place


@pytest.fixture(
    params=[
        *("a folder", "JSON lines", "lists"),
        pytest.param("Hugging Face", marks=pytest.mark.integration),
    ]
)
def own(request, folder):
    """The same questions, given in different ways: how to load a split."""
    entries = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("train", "dev")}
    places = {"a folder": folder, "JSON lines": folder / "lines", "lists": entries}
    if request.param == "Hugging Face":
        datasets = pytest.importorskip("datasets", reason="needs the package datasets")
        made = {name: datasets.Dataset.from_list(rows) for name, rows in entries.items()}
        places["Hugging Face"] = datasets.DatasetDict(made)
    databases = None if request.param == "a folder" else folder
    return lambda split: load_tasks(places[request.param], split, databases=databases)


def test_of_ones_own_questions_those_are_unseen_that_train_has_not(own):
    new = ["All of them?", "How many vaults are there?"]
    expected = {
        "tasks": ["Which has 4?", "Three of them?", *new],
        "databases": new[1:],
        "shapes": ["how many  vaults are there", *new],  # "WHERE 1 = 1" is a shape of its own
    }
    for kind, questions in expected.items():
        tasks = [task for task in own(f"dev-{kind}") if task.question and task.gold_sql]
        assert [task.question for task in tasks] == questions
        assert shared(tasks, own("train"), kind) == []

    # The entry that cannot be used makes no set seen.
    assert "databases" in kinds_unseen(own("dev-databases"), own("train"), FAMILY.kinds, FAMILY)


def test_a_file_that_serves_as_every_split_has_nothing_unseen(folder):
    for kind in FAMILY.kinds:
        with pytest.raises(ConfigurationError, match=f"none of .* has {kind} that 'train' lacks"):
            load_tasks(folder / "rows.jsonl", f"dev-{kind}", databases=folder)


@pytest.mark.nightly
def test_of_one_database_dev_has_unseen_shapes_and_no_unseen_database(folder):
    file = folder / "database" / "seed_bank" / "seed_bank.sqlite"
    options = {"n": 120}
    training, dev = (load_tasks(file, split, synthesis=options) for split in ("train", "dev"))

    assert kinds_unseen(dev, training, FAMILY.kinds, FAMILY) == ("tasks", "shapes")
    assert load_tasks(file, "dev-shapes", synthesis=options).ids == dev.ids
    with pytest.raises(ConfigurationError, match=r"none of .* has databases that 'train' lacks"):
        load_tasks(file, "dev-databases", synthesis=options)


@pytest.mark.nightly
@pytest.mark.skipif(
    "TOOLGYM_SPIDER" not in os.environ, reason="TOOLGYM_SPIDER names no folder with Spider"
)
@pytest.mark.parametrize("kind", FAMILY.kinds)
def test_what_is_called_unseen_of_spider_is_not_in_its_train(kind):
    spider = Path(os.environ["TOOLGYM_SPIDER"])
    training, dev = load_tasks(spider, "train"), load_tasks(spider, f"dev-{kind}")

    assert len(dev)
    assert shared(dev, training, kind) == []
