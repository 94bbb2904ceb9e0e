"""What the sentences of the shapes leave out: rows of links, double negatives, chains, fragments.

The drafts of many attempts are read as text, before anything is proved of them.
"""

import functools
import random
import re

import pytest

from sqlgym.database.database import open_database
from sqlgym.datasets.bundled import dataset_folder
from sqlgym.synthesis import SHAPES
from sqlgym.synthesis.conditions.opposites import opposites
from sqlgym.synthesis.drafting import Draft, Unfit, said_alike
from sqlgym.synthesis.reading.profiling import profile
from sqlgym.synthesis.reading.world import Role
from sqlgym.synthesis.shapes import asking
from tests.sqlgym.synthesis.firm import make

FOLDER = dataset_folder("bundled-2") / "database"
LIBRARY = FOLDER / "town_library" / "town_library.sqlite"
HUTS = FOLDER / "mountain_huts" / "mountain_huts.sqlite"


@pytest.fixture(scope="module")
def firm(tmp_path_factory):
    return make(tmp_path_factory.mktemp("plain") / "firm.db")


@functools.cache
def world_of(path):
    return profile(open_database(path))


def drafted(path, *names, times=150):
    """Questions and SQL of some shapes, or of all."""
    found = []
    for name in names or SHAPES:
        rng = random.Random(name)
        for _ in range(times):
            try:
                candidate = SHAPES[name](Draft(world_of(path), rng))
            except Unfit:
                continue
            found.append((name, candidate.question, candidate.sql))
    return found


def test_no_question_speaks_of_the_rows_that_only_link_others():
    questions = [question for _, question, _ in drafted(LIBRARY)]

    assert not [question for question in questions if re.search(r"\blinks?\b", question)]
    assert [question for question in questions if "linked to the author" in question]


def test_rows_that_are_linked_to_nothing_are_said_to_be():
    questions = [question for _, question, _ in drafted(HUTS, "without-children", times=600)]

    assert [question for question in questions if "linked to no trail" in question]


def test_no_question_has_three_owners_in_a_row(firm):
    for path in (firm, LIBRARY):
        for _, question, _ in drafted(path):
            plain = re.sub(r"'[^']*'(?!s)", "", question)
            assert not re.search(r"\w's \w+(?: \w+)?'s \w+(?: \w+)?'s ", plain), question


def test_opposites_exclude_each_other(firm):
    rng = random.Random(3)
    database = open_database(firm)
    for entity in world_of(firm).entities:
        for field in entity.having(Role.CATEGORY, Role.QUANTITY, Role.DATE, Role.YEAR):
            for _ in range(5):
                try:
                    first, second = opposites(Draft(world_of(firm), rng), entity, field)
                except Unfit:
                    continue
                sql = f"SELECT count(*) FROM {entity.sql} WHERE {first.sql} AND {second.sql}"
                assert database.query(sql).rows == ((0,),)


def test_no_row_lacks_what_is_not_so(firm):
    names = ("without-children", "parents-with-none", "parents-all-children")
    for _, question, _ in drafted(firm, *names, times=400):
        assert not re.search(
            r"(?:no|none|any|without) .*(?:\bis not\b|other than|that are not)", question
        ), question


@pytest.mark.parametrize(
    ("phrase", "alone"),
    [
        ("the date and the status of the order", "date and status of the order"),
        ("the name, the age and the town of each", "name, age and town of each"),
        ("the name of the port and the name of its town", "name of the port and the name of its"),
        ("each year with the number", "each year with the number"),
    ],
)
def test_a_fragment_has_all_articles_or_none(phrase, alone):
    assert asking._without_articles(phrase).startswith(alone)


def test_two_names_in_a_question_are_both_bare_or_both_in_quotes(firm):
    found = drafted(firm, "larger-of-parents", times=300) + drafted(
        LIBRARY, "larger-of-parents", times=300
    )
    for _, question, sql in found:
        values = re.findall(r"'((?:[^']|'')*)'", sql.partition(" IN (")[2].partition(")")[0])
        values = [value.replace("''", "'") for value in values]
        quotes = {f"'{value}'" in question or f'"{value}"' in question for value in values}
        assert len(quotes) == 1, question
    assert found
    assert said_alike() == []


def test_a_rank_is_called_a_rank_and_bands_are_asked_for_one_by_one(firm):
    ranks = [question for _, question, _ in drafted(firm, "place-of-row")]
    bands = [question for _, question, _ in drafted(firm, "counts-in-bands")]

    assert ranks
    assert all("rank" in question.lower() for question in ranks)
    assert bands
    assert not [question for question in bands if "and with" in question]
