"""What each split has that `train` has not: computed for every named set, and for a user's own.

What is shared is looked up here by other code than that which chose the tasks: SQL as sqlglot
writes it, its literals replaced in the tree.
"""

import functools
import json
import os
import re
import shutil
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from sqlgym import load_tasks
from sqlgym.datasets.bundled import DATASETS, dataset_folder
from sqlgym.datasets.family import SqlTaskFamily
from sqlgym.tasks.splits import skeleton
from toolgym import ConfigurationError, registration
from toolgym.unseen import kinds_unseen

FAMILY = SqlTaskFamily()
ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "data-sets.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("| ").split("|")]
    for line in PAGE.split("| data set | split |")[1].splitlines()[2:]
    if line.startswith("|")
]
ROWS = ROWS[: next((n for n, row in enumerate(ROWS) if row[0] not in DATASETS), len(ROWS))]


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


def kinds_of(split):
    return (split.rpartition("-")[2],) if "-" in split else ()


def of_set(name, value):
    """A parameter about a named set; the largest takes its time."""
    marks = pytest.mark.slow if name == "bundled-2" else ()
    return pytest.param(value, id="-".join(value[:2]) if value is not name else name, marks=marks)


# The sets that have a name ------------------------------------------------------------------------


def test_every_split_of_every_named_set_is_in_the_table():
    named = {(name, s) for name in DATASETS for s in FAMILY.splits(name) if s != "train"}
    assert {(row[0], row[1]) for row in ROWS} == named


@pytest.mark.parametrize("row", [of_set(row[0], row) for row in ROWS])
def test_the_table_says_what_train_has_of_a_split(row):
    name, split, *cells = row
    tasks, training = load_tasks(name, split), load_tasks(name, "train")
    found = [len(tasks), len(shared(tasks, training, "tasks"))]
    for kind in ("databases", "shapes"):
        (key,) = KEYS[kind]
        found += [len({key(task) for task in tasks}), len(shared(tasks, training, kind))]

    assert [int(cell.replace(",", "")) for cell in cells] == found


@pytest.mark.parametrize("name", [of_set(name, name) for name in DATASETS])
@pytest.mark.parametrize("kind", FAMILY.kinds)
def test_what_is_called_unseen_of_a_named_set_is_not_in_train(name, kind):
    for base in (split for split in FAMILY.splits(name) if split in ("dev", "test")):
        training = load_tasks(name, "train")
        tasks = load_tasks(name, f"{base}-{kind}")
        assert shared(tasks, training, kind) == []
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


@pytest.fixture(params=["a folder", "JSON lines", "lists", "Hugging Face"])
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


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("tasks", ["Which has 4?", "Three of them?", "All of them?", "How many vaults are there?"]),
        ("databases", ["How many vaults are there?"]),
        ("shapes", ["All of them?", "How many vaults are there?"]),
    ],
)
def test_of_ones_own_questions_those_are_unseen_that_train_has_not(own, kind, expected):
    tasks = [task for task in own(f"dev-{kind}") if task.question and task.gold_sql]

    if kind == "shapes":  # "WHERE 1 = 1" is a shape of its own
        assert tasks.pop(0).question == "how many  vaults are there"
    assert [task.question for task in tasks] == expected
    assert shared(tasks, own("train"), kind) == []


def test_an_entry_that_cannot_be_used_makes_no_set_seen(own):
    usable = own("dev-databases")
    assert "databases" in kinds_unseen(usable, own("train"), FAMILY.kinds, FAMILY)


def test_a_file_that_serves_as_every_split_has_nothing_unseen(folder):
    for kind in FAMILY.kinds:
        with pytest.raises(ConfigurationError, match=f"none has {kind} that 'train' has not"):
            load_tasks(folder / "rows.jsonl", f"dev-{kind}", databases=folder)


@pytest.mark.slow
def test_of_one_database_dev_has_unseen_shapes_and_no_unseen_database(folder):
    file = folder / "database" / "seed_bank" / "seed_bank.sqlite"
    options = {"n": 120}
    training, dev = (load_tasks(file, split, synthesis=options) for split in ("train", "dev"))

    assert kinds_unseen(dev, training, FAMILY.kinds, FAMILY) == ("tasks", "shapes")
    assert load_tasks(file, "dev-shapes", synthesis=options).ids == dev.ids
    with pytest.raises(ConfigurationError, match="none has databases that 'train' has not"):
        load_tasks(file, "dev-databases", synthesis=options)


@pytest.mark.slow
@pytest.mark.skipif(
    "TOOLGYM_SPIDER" not in os.environ, reason="TOOLGYM_SPIDER names no folder with Spider"
)
@pytest.mark.parametrize("kind", FAMILY.kinds)
def test_what_is_called_unseen_of_spider_is_not_in_its_train(kind):
    spider = Path(os.environ["TOOLGYM_SPIDER"])
    training, dev = load_tasks(spider, "train"), load_tasks(spider, f"dev-{kind}")

    assert len(dev)
    assert shared(dev, training, kind) == []


# One skeleton -------------------------------------------------------------------------------------


def test_there_is_one_function_for_the_skeleton_of_a_query():
    defined = [
        str(file.relative_to(ROOT))
        for package in ("sqlgym", "toolgym", "aflowgym", "adapters")
        for file in (ROOT / package).rglob("*.py")
        if re.search(r"^def \w*skeleton\w*\(", file.read_text("utf-8"), re.M)
    ]

    assert defined == ["sqlgym/tasks/splits.py"]


def test_a_skeleton_of_a_skeleton_is_itself():
    once = skeleton("SELECT a FROM t WHERE b IN (-1, 2) AND c = 'x' LIMIT 3")
    assert skeleton(once) == once
