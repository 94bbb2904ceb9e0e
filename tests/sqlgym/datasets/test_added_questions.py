"""The questions that "bundled-3" adds to the databases of "bundled-2": the gates they pass."""

import re
from collections import Counter

import pytest
from sqlglot import exp

from sqlgym.blind import judge
from sqlgym.database.database import open_database
from sqlgym.database.parsing import parse
from sqlgym.datasets import bundled
from sqlgym.judging.several_results import several_results
from sqlgym.synthesis import canonical_sql
from sqlgym.tasks.hardness import hardness
from sqlgym.tasks.splits import plain_question
from tests.sweeps import sweep

SPLITS = ("train", "dev", "test")
LEVELS = ("easy", "medium", "hard", "extra")


def in_set(name):
    source = bundled.read(bundled.bundled_dir(name))
    return [dict(entry) | {"split": split} for split in SPLITS for entry in getattr(source, split)]


NEWER, OLDER = in_set("bundled-3"), in_set("bundled-2")
KNOWN = {entry["id"] for entry in OLDER}
ADDED = [entry for entry in NEWER if entry["id"] not in KNOWN]
DATABASES = sorted({entry["db_id"] for entry in ADDED})


@pytest.fixture(scope="module")
def folder():
    return bundled.dataset_folder("bundled-3")


def added_to(db_id):
    return [entry for entry in ADDED if entry["db_id"] == db_id]


def database_of(folder, db_id):
    return open_database(folder / "database" / db_id / f"{db_id}.sqlite")


def test_it_holds_the_older_set_whole_and_as_many_again():
    assert [entry for entry in NEWER if entry["id"] in KNOWN] == OLDER
    assert len(ADDED) > len(OLDER)
    assert len(DATABASES) == 22


def test_no_question_and_no_query_occurs_twice():
    texts = Counter(plain_question(entry["question"]) for entry in NEWER)
    queries = Counter((entry["db_id"], canonical_sql(entry["query"])) for entry in ADDED)
    older = {(entry["db_id"], canonical_sql(entry["query"])) for entry in OLDER}

    assert [text for text, count in (texts | queries).items() if count > 1] == []
    assert queries.keys() & older == set()


@pytest.mark.parametrize("db_id", DATABASES)
def test_ids_levels_and_shares_of_the_added_questions_are_in_order(db_id):
    added = added_to(db_id)
    levels = Counter(entry["hardness"] for entry in added)

    assert [entry["id"] for entry in added] == [f"{db_id}-{201 + n}" for n in range(len(added))]
    assert all(entry["hardness"] == hardness(entry["query"]) for entry in added)
    assert all(levels[level] >= 0.12 * len(added) for level in LEVELS)


@pytest.mark.parametrize("db_id", DATABASES)
def test_every_added_gold_has_one_fair_result(db_id, folder):
    database, wrong = database_of(folder, db_id), {}
    for entry in added_to(db_id):
        result = database.query(entry["query"])
        rows = result.rows
        told = str(rows[0][0]) if rows else ""
        is_told = re.search(rf"(?<![\w.]){re.escape(told)}(?![\w.])", entry["question"], re.I)
        fair = {
            "rows": 0 < len(rows) <= 25 and len(set(rows)) == len(rows),
            "nulls": all(value is not None for row in rows for value in row),
            "one result": several_results(database, entry["query"], result) is None,
            "not told": not (len(rows) == len(rows[0]) == 1 and is_told),
        }
        if not all(fair.values()):
            wrong[entry["id"]] = fair

    assert wrong == {}


@pytest.mark.parametrize("db_id", sweep(DATABASES, DATABASES[::6]))
def test_the_judge_of_questions_finds_nothing_wrong_and_reads_most(db_id, folder):
    database, wrong, read = database_of(folder, db_id), {}, 0
    for entry in added_to(db_id):
        findings = judge(entry["question"], entry["query"], database).findings
        kinds = {finding.kind for finding in findings}
        read += not kinds
        if kinds - {"unreadable"}:
            wrong[entry["id"]] = findings

    assert wrong == {}
    assert read > len(added_to(db_id)) / 2


def test_no_question_quotes_a_name_or_asks_for_a_key():
    odd = re.compile(r'\b(column|table|records? in) "|\bIDs?\b')

    assert [entry["id"] for entry in ADDED if odd.search(entry["question"])] == []


@pytest.mark.parametrize("db_id", DATABASES)
def test_no_table_is_in_more_than_five_sixths_of_the_questions(db_id):
    added = added_to(db_id)
    asked = Counter(
        name
        for entry in added
        for name in {table.name.lower() for table in parse(entry["query"]).find_all(exp.Table)}
    )

    assert 6 * asked.most_common(1)[0][1] <= 5 * len(added)
