"""Questions that the templates write: levels, joins, proper sentences, values that are in the SQL.

Every run uses a database of a firm; every night, also the bundled databases and, where they are
available, those of Spider.
"""

import os
import random
import re
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from sqlgym.database import open_database
from sqlgym.datasets.bundled import bundled_dir, dataset_folder
from sqlgym.synthesis import LEVELS, TEMPLATES, english, synthesize, template
from sqlgym.synthesis.conditions import condition
from sqlgym.synthesis.drafting import Candidate, Draft, Unfit
from sqlgym.synthesis.profiling import profile
from sqlgym.synthesis.proof import Rejected, for_proofs, prove
from sqlgym.synthesis.schema import Role
from sqlgym.synthesis.templates.owners import owner_of_extreme
from sqlgym.synthesis.templates.rows import entity_of
from tests.sqlgym.synthesis.firm import make
from tests.sweeps import sweep
from toolgym import ConfigurationError, rollout
from toolgym.policies import ExpertPolicy

SPIDER = "TOOLGYM_SPIDER"
FEW, MANY, PLAYED = 100, 150, 60


def files():
    """All databases; those of the bundled set by name."""
    bundled = sorted(path.name for path in (bundled_dir() / "bundled" / "database").iterdir())
    spider = os.environ.get(SPIDER)
    found = sorted((Path(spider).resolve() / "database").rglob("*.sqlite")) if spider else []
    return [*bundled, *found]


def path_of(file):
    if isinstance(file, Path):
        return file
    return dataset_folder("bundled") / "database" / file / f"{file}.sqlite"


def name_of(file):
    return f"spider-{file.stem}" if isinstance(file, Path) else file


@pytest.fixture(scope="module")
def firm(tmp_path_factory):
    return make(tmp_path_factory.mktemp("firm") / "firm.db")


@pytest.fixture(scope="module", params=sweep(["firm", *files()], ["firm"], name_of))
def made(request, firm):
    """The questions about a database."""
    if request.param == "firm":
        return synthesize(firm, n=FEW)
    return synthesize(path_of(request.param), n=MANY)


def test_all_levels_are_reached(made):
    asked = len(made.tasks)

    assert made.report.kept == asked in (FEW, MANY)
    assert min(made.report.by_hardness[level] for level in LEVELS) >= asked // 16


def test_a_third_of_the_questions_join_tables_and_some_join_three(firm):
    joins = [task.sql.count(" JOIN ") for task in synthesize(firm, n=FEW, seed=1).tasks]

    assert sum(count > 0 for count in joins) >= 0.35 * FEW
    assert sum(count > 1 for count in joins) >= 0.06 * FEW


@pytest.mark.nightly
@pytest.mark.parametrize("file", files(), ids=name_of)
def test_the_expert_solves_all_tasks_in_the_environment(file):
    options = {"split": "all", "synthesis": {"n": PLAYED}}
    played = rollout.evaluate(
        "sqlgym/Explore-v0", ExpertPolicy(), dataset=str(path_of(file)), **options
    )

    assert (played.episodes, played.accuracy) == (PLAYED, 1.0)
    assert played.refused == ()


@pytest.mark.nightly
def test_every_template_is_kept_somewhere(firm):
    kept = {task.template for task in synthesize(firm, n=3 * MANY).tasks}
    for file in files():
        kept |= {task.template for task in synthesize(path_of(file), n=MANY).tasks}

    assert kept == TEMPLATES.keys()


QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"(?:[^\"]|\"\")*\"")
FAULTS = {
    "begins with no capital": r"^[^A-Z]",
    "ends with no full stop or question mark": r"[^.?]$",
    "two blanks": r"  ",
    "a blank before a sign": r" [,.;?]",
    "two signs": r"[,.;?][,.;?]",
    "a brace that was not filled": r"[{}]",
    "a value that was not said": r"\b(?:None|nan|inf|NULL|True|False)\b",
    "a word twice": r"\b([a-z]+) \1\b",
    "two articles": r"\b(?:an?|the) (?:an?|the)\b",
    "a before a vowel": r"\ba (?:[aei][a-z]|o(?!nc?e)|u(?!ni|s[aeu]|ti|bi|ro)|hour|honest|heir)",
    "an before a consonant": r"\ban (?:[b-df-gj-np-tv-z][a-z]|uni|us[aeu]|one\b|euro)",
    "clauses that do not join": r"\b(?:that|whose|with|of|to) (?:that|whose|and|or)\b",
    "two conjunctions": r"\b(?:and|or) (?:and|or)\b",
    "a verb too many": r"\b(?:is|are|has|have) (?:is|are|has|have)\b",
}


def faults(question):
    """What is wrong with a question, outside of quotes."""
    bare = QUOTED.sub("'x'", question)
    return [name for name, pattern in FAULTS.items() if re.search(pattern, bare)]


def test_questions_are_proper_sentences(made):
    found = [(faults(task.question), task.question) for task in made.tasks]

    assert [fault for fault in found if fault[0]] == []


MONTHS = [english.month_name(month) for month in range(1, 13)]
MONTH = re.compile(rf"\b({'|'.join(MONTHS)}) (\d{{4}})\b")
NUMBER = re.compile(r"(?<![\w.])\d[\d-]*(?:\.\d+)?(?!\w)")


def not_in_sql(question, sql):
    """Texts, months, dates and numbers that a question names and its SQL does not."""
    plain = sql.replace("''", "'")
    wanted = [quoted[0][1:-1].replace('""', '"') for quoted in QUOTED.finditer(question)]
    rest = QUOTED.sub("", question)
    wanted += [f"{year}-{MONTHS.index(month) + 1:02}" for month, year in MONTH.findall(rest)]
    wanted += NUMBER.findall(MONTH.sub("", rest))
    return [text for text in wanted if text not in plain]


def test_what_a_question_names_is_in_its_sql(made):
    wrong = [(t.question, t.sql) for t in made.tasks if not_in_sql(t.question, t.sql)]

    assert wrong == []


def test_a_condition_says_its_sql(firm):
    words = {
        " > ": r"more than|after",
        " < ": r"less than|fewer than|before",
        " >= ": r"at least|or later|on or after",
        " <= ": r"at most|or earlier|on or before",
        " <> ": r"is not ",
        " IN ": r" or ",
        " BETWEEN ": r"between .* and ",
        " LIKE '%": r"contains '",
    }
    world = profile(open_database(firm))
    drafts = [Draft(world, random.Random(seed)) for seed in range(300)]
    found = []
    for draft in drafts:
        try:
            found.append(condition(draft, entity_of(draft)))
        except Unfit:
            continue

    for sign, pattern in words.items():
        those = [each for each in found if sign in each.sql]
        assert those
        assert all(re.search(pattern, each.whose) for each in those)


@pytest.fixture
def registry():
    """Templates that a test adds are removed after it."""
    before = dict(TEMPLATES)
    yield
    TEMPLATES.clear()
    TEMPLATES.update(before)


def test_a_template_of_your_own_is_used_like_the_others(firm, registry):
    @template("twice", weight=3)
    def twice(draft):
        entity = entity_of(draft, lambda e: e.having(Role.QUANTITY))
        field = draft.pick(entity.having(Role.QUANTITY))
        sql = f"SELECT 2 * max({field.sql()}) FROM {entity.sql}"
        question = f"what is twice the highest {field.noun.one} of all {entity.noun.many}?"
        return Candidate(question, sql, (entity.name,))

    @template("never")
    def never(draft):
        raise Unfit

    written = synthesize(firm, n=24, hardness={"easy": 1})
    own = [task.question for task in written.tasks if " twice " in task.question]
    assert own
    assert all(question.startswith("What is twice the highest ") for question in own)

    with pytest.raises(
        ConfigurationError, match="a template 'twice' already exists; choose another name"
    ):
        template("twice")(never)


def test_a_list_of_keys_has_no_null(tmp_path):
    path = tmp_path / "staff.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE employee (employee_id INTEGER PRIMARY KEY, name TEXT, salary INTEGER,"
            " city TEXT, manager_id INTEGER REFERENCES employee (employee_id))"
        )
        first, city = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn"), ("Rome", "Oslo", "Bern")
        for n in range(1, 25):
            manager = None if n < 4 else n % 5 + 1
            row = (n, f"{first[n % 6]} {chr(65 + n)}ole", 900 + 37 * n, city[n % 3], manager)
            connection.execute("INSERT INTO employee VALUES (?, ?, ?, ?, ?)", row)

    found = [task.sql for task in synthesize(path, n=60).tasks if " NOT IN (" in task.sql]

    assert found
    assert all("T2.manager_id IS NOT NULL" in sql for sql in found)


@pytest.mark.parametrize("second", ["2019-05-01", "2019-05-02"])
def test_the_owner_of_the_first_row_is_asked_for_only_if_one_row_is_first(tmp_path, second):
    path = tmp_path / "club.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE player (player_id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE match (match_id INTEGER PRIMARY KEY, day TEXT,"
            " player_id INTEGER REFERENCES player (player_id));"
        )
        for n, name in enumerate(("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn")):
            connection.execute("INSERT INTO player VALUES (?, ?)", (n, f"{name} Stone"))
        days = ["2019-05-01", second, *(f"2019-06-{n:02}" for n in range(1, 20))]
        for n, day in enumerate(days):
            row = (n, day, 0 if n < 2 else n % 6)
            connection.execute("INSERT INTO match VALUES (?, ?, ?)", row)
    database = open_database(path)
    world = profile(database)
    entities = {entity.name: entity for entity in world.entities}

    asked = set()
    for seed in range(30):
        with suppress(Unfit, Rejected):
            candidate = owner_of_extreme(Draft(world, random.Random(seed)))
            prove(for_proofs(database), candidate, entities)
            asked.add("earliest" if "earliest" in candidate.question else "latest")

    assert asked == ({"latest"} if second == "2019-05-01" else {"earliest", "latest"})
