"""What is trained on is not what is measured: no two splits share a question, a query, a database.

A question is compared without case, blanks and end mark, a query as sqlglot writes it, so that
neither another layout nor other capitals make a twin look like a stranger. Of a set on one database
the splits share that database, and nothing else.
"""

import itertools
import shutil

import pytest
import sqlglot

from sqlgym import load_tasks
from sqlgym.datasets.bundled import dataset_folder
from sqlgym.datasets.family import SqlTaskFamily
from sqlgym.tasks.splits import plain_question, skeleton
from tests.sweeps import sweep
from toolgym.family import SynthesisOrder

FAMILY = SqlTaskFamily()
FEW = {"n": 32, "hardness": {"easy": 1}}
SETS = ("bundled", "several databases", "a folder of files")
LENDERS = ("ferry_line", "seed_bank", "observatory")  # their files, as bare ones


def canonical(task):
    tree = sqlglot.parse_one(task.gold_sql, dialect="sqlite")
    return tree.sql(dialect="sqlite", normalize=True, normalize_functions="upper", comments=False)


def shared(sets, key):
    """What two splits have in common."""
    found = {split: {key(task) for task in tasks} for split, tasks in sets.items()}
    assert all(found.values()), "a split is empty"
    pairs = itertools.combinations(found, 2)
    return {
        (one, other): found[one] & found[other] for one, other in pairs if found[one] & found[other]
    }


def sets_of(dataset):
    return {split: load_tasks(dataset, split) for split in FAMILY.splits(dataset)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with database files and nothing else."""
    folder, built = tmp_path_factory.mktemp("files"), dataset_folder("bundled")
    for name in LENDERS:
        shutil.copy(built / "database" / name / f"{name}.sqlite", folder / f"{name}.db")
    return folder


@pytest.fixture(scope="module")
def several(files, tmp_path_factory):
    """A folder that was written with three splits for several databases."""
    out = tmp_path_factory.mktemp("several") / "tasks"
    splits = {"train": 0.5, "dev": 0.25, "test": 0.25}
    FAMILY.synthesize(SynthesisOrder((files,), out, splits, {"n": 6}))
    return out


@pytest.fixture(scope="module")
def single(files, tmp_path_factory):
    """The same for one database."""
    out = tmp_path_factory.mktemp("single") / "tasks"
    order = SynthesisOrder((files / "seed_bank.db",), out, {"train": 0.6, "dev": 0.4}, FEW)
    FAMILY.synthesize(order)
    return out


@pytest.fixture(params=sweep(SETS, ["several databases", "a folder of files"]))
def by_database(request, files, several):
    """The splits of a set that is divided by database."""
    made = {"several databases": several, "a folder of files": files}
    if request.param == "a folder of files":
        options = {"n": 6}
        return {s: load_tasks(files, s, synthesis=options) for s in ("train", "dev", "test")}
    return sets_of(made.get(request.param, request.param))


ONE_DATABASE = ("one file", "one database with splits", "one file with many tasks")


@pytest.fixture(params=sweep(ONE_DATABASE, ONE_DATABASE[:2]))
def of_one_database(request, files, single):
    """The splits of a set on one database."""
    if request.param == "one database with splits":
        return sets_of(single)
    file, options = files / "ferry_line.db", FEW if request.param == "one file" else {"n": 200}
    return {s: load_tasks(file, s, synthesis=options) for s in ("train", "dev", "test")}


def test_splits_by_database_share_no_database_no_question_and_no_query(by_database):
    assert len(by_database) >= 2
    assert shared(by_database, lambda task: task.item) == {}
    assert shared(by_database, lambda task: plain_question(task.question)) == {}
    assert shared(by_database, canonical) == {}


def test_splits_of_one_database_share_no_question_and_no_query_whatever_its_values(of_one_database):
    assert len(of_one_database) >= 2
    assert shared(of_one_database, lambda task: plain_question(task.question)) == {}
    assert shared(of_one_database, canonical) == {}
    assert shared(of_one_database, lambda task: skeleton(canonical(task))) == {}


def test_another_seed_holds_out_the_same_skeletons(files):
    """What one seed trains on, the next one does not measure."""
    file = files / "ferry_line.db"
    trained, other, held_out = (
        load_tasks(file, split, synthesis=FEW | {"seed": seed})
        for split, seed in (("train", 0), ("train", 1), ("dev", 1))
    )

    assert trained.ids != other.ids
    sets = {"train": trained, "dev": held_out}
    assert shared(sets, lambda task: skeleton(canonical(task))) == {}
