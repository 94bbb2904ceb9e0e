"""What is written about real databases: enough of every level and shape, in proper English.

The database of a firm is used in every run; the bundled ones and, where they are at hand, those of
Spider are used every night, each as a bare file.
"""

import os
import re
from datetime import date, timedelta
from pathlib import Path

import pytest

from sqlgym.datasets.bundled import bundled_dir, dataset_folder
from sqlgym.synthesis import LEVELS, SHAPES, english, shape, synthesize
from sqlgym.synthesis.drafting import Candidate, Unfit
from sqlgym.synthesis.engine import VARIANTS
from sqlgym.synthesis.schema import Role
from tests.sqlgym.synthesis.firm import make
from tests.sweeps import sweep
from toolgym import ConfigurationError, rollout
from toolgym.policies import ExpertPolicy

SPIDER = "TOOLGYM_SPIDER"
FEW, MANY, PLAYED = 24, 150, 60


def files():
    """All databases, each by its name; those of a bundled set are built when they are asked for."""
    bundled = sorted(path.stem for path in bundled_dir().glob("bundled/database/*/*.sql"))
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
    """What is written about a database."""
    if request.param == "firm":
        return synthesize(firm, n=FEW)
    return synthesize(path_of(request.param), n=MANY)


def test_there_are_enough_tasks_of_every_level(made):
    report, asked = made.report, len(made.tasks)

    assert report.kept == asked in (FEW, MANY)
    assert min(report.by_hardness[level] for level in LEVELS) >= asked // 8, report.missing
    assert len(report.by_shape) > min(asked // 2, len(SHAPES) // 4)


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
def test_every_shape_is_kept_somewhere(firm):
    kept = set(synthesize(firm, n=3 * MANY).report.by_shape)
    for file in files():
        kept |= synthesize(path_of(file), n=MANY).report.by_shape.keys()

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


def test_questions_are_proper_sentences(made):
    found = [(faults(task.question), task.question) for task in made.tasks]

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


def test_what_a_question_names_stands_in_its_sql(made):
    wrong = [(t.question, t.sql) for t in made.tasks if not_in_sql(t.question, t.sql)]

    assert wrong == []


@pytest.fixture
def fresh_shapes():
    """Shapes that a test adds are gone after it."""
    before = dict(SHAPES)
    yield
    SHAPES.clear()
    SHAPES.update(before)


def test_a_shape_of_your_own_is_used_like_the_others(firm, fresh_shapes):
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

    written = synthesize(firm, n=FEW, hardness={"easy": 1})
    own = [task for task in written.tasks if task.shape == "twice"]
    assert 1 <= len(own) <= 2 * VARIANTS
    assert all(task.question.startswith("What is twice the highest ") for task in own)
    assert written.report.by_shape["never"] == 0

    with pytest.raises(ConfigurationError, match="a shape 'twice' already; take another name"):
        shape("twice")(never)
