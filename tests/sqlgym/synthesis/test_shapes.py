"""What is written about real databases: enough of every level and shape, in proper English.

The bundled databases and, where it is at hand, the Spider data; each is used as a bare file.
"""

import functools
import operator
import os
import random
import re
import sqlite3
from datetime import date, timedelta
from pathlib import Path

import pytest

from sqlgym.datasets.bundled import dataset_folder
from sqlgym.synthesis import LEVELS, SHAPES, shape, synthesize
from sqlgym.synthesis.drafting import Candidate, Unfit
from sqlgym.synthesis.engine import VARIANTS
from sqlgym.synthesis.language import english
from sqlgym.synthesis.reading.world import Role
from tests.sqlgym.synthesis.firm import make
from tests.sweeps import sweep
from toolgym import ConfigurationError, rollout
from toolgym.policies import ExpertPolicy

SPIDER = "TOOLGYM_SPIDER"
LEAST = 150
stem = operator.attrgetter("stem")
PLAYED = 60


QUICK = ("ferry_line", "film_festival", "hospital_wards")


def databases():
    """All files as parameters."""
    bundled = [*dataset_folder("bundled").rglob("*.sqlite")]
    bundled += dataset_folder("bundled-2").rglob("*.sqlite")
    yield from sweep(sorted({each.stem: each for each in bundled}.values()), QUICK, stem)
    if not os.environ.get(SPIDER):
        skip = pytest.mark.skip(reason=f"{SPIDER} is not set")
        yield pytest.param(Path(), id="spider", marks=skip)
        return
    spider = sorted((Path(os.environ[SPIDER]).resolve() / "database").rglob("*.sqlite"))
    yield from sweep(spider, [f"spider-{spider[0].stem}"], lambda path: f"spider-{path.stem}")


DATABASES = list(databases())
each_database = pytest.mark.parametrize("path", DATABASES)


@functools.cache
def made(path):
    return synthesize(path, n=LEAST)


@each_database
def test_there_are_enough_tasks_of_every_level(path):
    report = made(path).report

    assert report.kept == LEAST
    assert min(report.by_hardness[level] for level in LEVELS) >= LEAST // 8, report.missing
    assert len(report.by_shape) > len(SHAPES) // 4


@each_database
def test_the_expert_solves_all_tasks_in_the_environment(path):
    played = rollout.evaluate(
        "sqlgym/Explore-v0",
        ExpertPolicy(),
        dataset=str(path),
        split="all",
        synthesis={"n": PLAYED},
    )

    assert (played.episodes, played.accuracy) == (PLAYED, 1.0)
    assert played.refused == ()


@pytest.mark.slow
def test_every_shape_is_kept_somewhere(tmp_path):
    kept = set(synthesize(make(tmp_path / "firm.db"), n=3 * LEAST).report.by_shape)
    for path in (parameter.values[0] for parameter in DATABASES if parameter.id != "spider"):
        kept |= made(path).report.by_shape.keys()

    assert kept == SHAPES.keys()


QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"(?:[^\"]|\"\")*\"")
FAULTS = {
    "begins with no capital": r"^[^A-Z]",
    "ends with no full stop or question mark": r"[^.?]$",
    "two blanks": r"  ",
    "a blank before a sign": r" [,.;?]",
    "two signs": r"[,.;?][,.;?]",
    "a sign and no blank": r"[a-z][,.;?][A-Za-z]",
    "a brace that was not filled": r"[{}]",
    "a value that was not said": r"\b(?:None|nan|inf|NULL|True|False)\b",
    "a word twice": r"\b([a-z]+) \1\b",
    "two articles": r"\b(?:an?|the) (?:an?|the)\b",
    "a before a vowel": r"\ba (?:[aei][a-z]|o(?!nc?e)|u(?!ni|s[aeu]|ti|bi|ro)|hour|honest|heir)",
    "an before a consonant": r"\ban (?:[b-df-gj-np-tv-z][a-z]|uni|us[aeu]|one\b|euro)",
    "a before a plural": r"\ban? (?:(?!s)\w)+ies\b",
    "clauses that do not join": r"\b(?:that|whose|with|of|to) (?:that|whose|and|or)\b",
    "two conjunctions": r"\b(?:and|or) (?:and|or)\b",
    "a verb too many": r"\b(?:is|are|has|have) (?:is|are|has|have)\b",
    "no number to agree with": r"\b(?:they|these|those|all) (?:is|has)\b|\beach (?:are|have)\b",
}


def faults(question):
    """What is wrong with a question, outside of quotes."""
    bare = QUOTED.sub("'x'", question).replace("one of", "1 of")
    found = [name for name, pattern in FAULTS.items() if re.search(pattern, bare)]
    return found + (["empty quotes"] if re.search(r"''|(?<!\")\"\"(?!\")", question) else [])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many singers are there with an age above 3?", []),
        ("Which singers are from 'a  b, {c}' or \"it's an an\"?", []),
        ("how many?", ["begins with no capital"]),
        ("Count the singers", ["ends with no full stop or question mark"]),
        ("List  a hour.", ["two blanks", "a before a vowel"]),
        ("Which have an unit , a a {x}?", ["a blank before a sign", "a brace that was not filled"]),
        ("Is it ''?", ["empty quotes"]),
        ("What is the number of of singers?", ["a word twice"]),
        ("Name the singers that whose age is 3.", ["clauses that do not join"]),
    ],
)
def test_faults_of_a_question_are_seen(question, expected):
    assert set(expected) <= set(faults(question))
    assert bool(expected) == bool(faults(question))


@each_database
def test_questions_are_proper_sentences(path):
    found = [(faults(task.question), task.question) for task in made(path).tasks]

    assert [fault for fault in found if fault[0]] == []


MONTHS = [english.month_name(month) for month in range(1, 13)]
DAY = re.compile(rf"\b(\d+) ({'|'.join(MONTHS)}) (\d{{4}})\b")
MONTH = re.compile(rf"\b({'|'.join(MONTHS)}) (\d{{4}})\b")
NUMBER = re.compile(r"(?<![\w.])\d(?:[\d,]*\d)?(?:\.\d+)?(?!\w)")
HOW_A_MONTH_IS_WRITTEN = "in two digits, from 01 to 12."


def not_in_sql(question, sql):
    """What a question names and its SQL does not: texts, names, days, months, numbers."""
    rest = question.replace(HOW_A_MONTH_IS_WRITTEN, "")
    plain = sql.replace("''", "'")
    wanted = [(quoted[0][1:-1].replace('""', '"'),) for quoted in QUOTED.finditer(rest)]
    rest = QUOTED.sub("", rest)
    for day, month, year in DAY.findall(rest):
        named = date(int(year), MONTHS.index(month) + 1, int(day))
        wanted.append((str(named), str(named + timedelta(days=1))))
    rest = DAY.sub("", rest)
    wanted += [(f"{year}-{MONTHS.index(month) + 1:02}",) for month, year in MONTH.findall(rest)]
    numbers = {float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", plain)}
    names = re.findall(r"[A-Za-z_]\w*|\"[^\"]+\"", plain)
    numbers |= {float(number) for name in names for number in re.findall(r"\d+", name)}
    missing = [forms for forms in wanted if not any(form in plain for form in forms)]
    for number in NUMBER.findall(MONTH.sub("", rest)):
        if float(number.replace(",", "")) not in numbers:
            missing.append((number,))
    return missing


@pytest.mark.parametrize(
    ("question", "sql", "missing"),
    [
        ("Over 5,000 of 'a b'?", "SELECT x WHERE y > 5000 AND z = 'a b'", []),
        ("Over 5,000 of 'a b'?", "SELECT x WHERE y > 500 AND z = 'a c'", [("a b",), ("5,000",)]),
        ("After 3 May 2014?", "SELECT x WHERE y >= '2014-05-04'", []),
        ("In May 2014?", "SELECT x WHERE y LIKE '2014-06-%'", [("2014-05",)]),
        ('The value in column "x7"?', "SELECT max(x8) FROM t", [("x7",)]),
    ],
)
def test_what_is_missing_in_sql_is_seen(question, sql, missing):
    assert not_in_sql(question, sql) == missing


@each_database
def test_what_a_question_names_stands_in_its_sql(path):
    wrong = [(t.question, t.sql) for t in made(path).tasks if not_in_sql(t.question, t.sql)]

    assert wrong == []


@pytest.fixture(scope="module")
def ugly(tmp_path_factory):
    """No keys, cryptic and foreign names, quotes in names, a wide table, blobs, empty tables."""
    path = tmp_path_factory.mktemp("ugly") / "ugly.db"
    draw = random.Random("ugly")
    wide = [f"c{i}" for i in range(200)]
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE größe (schlüssel INT, länge REAL, farbe TEXT);"
            'CREATE TABLE "or""der" ("a b" INT, "select" TEXT, "per%" REAL, "" TEXT);'
            "CREATE TABLE t1 (x7, y8, z9, w); CREATE TABLE empty (a, b); CREATE TABLE one (a);"
            "CREATE VIEW v AS SELECT * FROM gone; INSERT INTO one VALUES (1);"
            f"CREATE TABLE wide ({', '.join(wide)});"
        )
        for place in range(40):
            colour = draw.choice(("rot", "grün", "bl'au"))
            row = (place, draw.randrange(1, 900) / 10, colour)
            connection.execute("INSERT INTO größe VALUES (?, ?, ?)", row)
            odd = (place, draw.choice("abc"), draw.choice((1.5, None, 2.25)), "é" * (place % 3))
            connection.execute('INSERT INTO "or""der" VALUES (?, ?, ?, ?)', odd)
            mixed = (draw.choice((1, "1", 2.5, b"\x00")), draw.randrange(9), "x\ny", float("inf"))
            connection.execute("INSERT INTO t1 VALUES (?, ?, ?, ?)", mixed)
            cells = [draw.randrange(50) for _ in wide]
            connection.execute(f"INSERT INTO wide VALUES ({', '.join('?' * 200)})", cells)
    connection.close()
    return path


def test_an_ugly_database_gives_sound_tasks(ugly):
    report = made(ugly).report
    tasks = rollout.evaluate(
        "sqlgym/Explore-v0", ExpertPolicy(), dataset=str(ugly), split="all", synthesis={"n": LEAST}
    )

    assert report.kept == tasks.episodes == LEAST
    assert tasks.accuracy == 1.0
    assert report.tables_left_out == {
        "empty": "It is empty.",
        "v": "It is a view: its rows are those of tables.",
    }
    assert {table for task in made(ugly).tasks for table in task.tables} >= {"größe", "wide"}
    assert all(task.question.isprintable() for task in made(ugly).tasks)


@pytest.fixture
def fresh_shapes():
    """Shapes that a test adds are gone after it."""
    before = dict(SHAPES)
    yield
    SHAPES.clear()
    SHAPES.update(before)


def test_a_shape_of_your_own_is_used_like_the_others(fresh_shapes):
    (path,) = next(parameter for parameter in DATABASES if parameter.id == QUICK[0]).values

    @shape("twice")
    def twice(draft):
        entity = draft.entity(lambda e: e.having(Role.QUANTITY))
        field = draft.pick(entity.having(Role.QUANTITY))
        sql = f"SELECT 2 * max({field.sql()}) FROM {entity.sql}"
        question = f"what is twice the highest {field.noun.one} of all {entity.noun.many}?"
        return Candidate(question, sql, (entity.name,))

    @shape("never")
    def never(draft):
        raise Unfit

    written = synthesize(path, n=LEAST)
    own = [task for task in written.tasks if task.shape == "twice"]
    assert 1 <= len(own) <= 2 * VARIANTS
    assert all(task.question.startswith("What is twice the highest ") for task in own)
    assert written.report.by_shape["never"] == 0

    with pytest.raises(ConfigurationError, match="a shape 'twice' already; take another name"):
        shape("twice")(never)
