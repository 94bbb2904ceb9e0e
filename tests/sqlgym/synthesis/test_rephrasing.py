"""Questions reworded by a hook: what verifies is kept, all else is refused and counted."""

import itertools
import sqlite3
from collections import Counter

import pytest

from sqlgym.database.database import open_database
from sqlgym.synthesis import REPHRASINGS_REFUSED, SynthesisReport, SynthTask, stream, synthesize
from sqlgym.synthesis.rephrasing import MOST_CHARS, Rephraser, question_values, solved_by_expert

N = 8


@pytest.fixture
def wines(tmp_path):
    """Bottles of three colours."""
    path = tmp_path / "wines.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE bottle (bottle_id INTEGER PRIMARY KEY, name TEXT, colour TEXT,"
            " price INTEGER, litres REAL, bought_on TEXT)"
        )
        names = itertools.product(("North", "South", "Old", "New"), ("Hill", "Brook", "Gate"))
        for place, name in enumerate(names):
            cells = (place, " ".join(name), ("red", "white", "rose")[place % 3])
            more = (
                5 + 7 * place % 40,
                0.25 * (1 + place % 5),
                f"202{place % 4}-0{1 + place % 9}-15",
            )
            connection.execute("INSERT INTO bottle VALUES (?, ?, ?, ?, ?, ?)", (*cells, *more))
    connection.close()
    return path


def reword(path, question, sql, hook, taken=()):
    """What becomes of one question, and the report."""
    report = SynthesisReport()
    known = {question, *taken}
    task = SynthTask(question, sql, "easy", "s", ("bottle",), sql)
    opened, is_taken = open_database(path), known.__contains__
    rephraser = Rephraser(opened, hook, report, is_taken, solved_by_expert)
    return rephraser.reword(task).question, report


DEAR = "How many bottles have a price above 12?"
DEAR_SQL = "SELECT count(*) FROM bottle WHERE price > 12"


@pytest.mark.parametrize(
    "text",
    [
        "Count the bottles that cost more than 12.",
        "count the  bottles\nthat cost more than 12.",
        "What number of bottles is dearer than twelve?",
        "Wie viele Flaschen kosten mehr als 12?",
    ],
)
def test_other_words_with_the_same_values_are_kept(wines, text):
    question, report = reword(wines, DEAR, DEAR_SQL, lambda question, sql: text)

    assert question == " ".join(text.split()).replace("count", "Count")
    assert (report.rephrased, report.rephrasings_refused) == (1, Counter())


def fails(question, sql):
    raise TimeoutError("the model does not answer")


REFUSED = [
    ("hook_failed", fails),
    ("no_text", lambda question, sql: ""),
    ("no_text", lambda question, sql: " \n"),
    ("no_text", lambda question, sql: None),
    ("no_text", lambda question, sql: 12),
    ("no_text", lambda question, sql: f"{question} {'Please. ' * MOST_CHARS}"),
    ("no_text", lambda question, sql: f"{question}\x00"),
    ("no_text", lambda question, sql: f"{question}\ud800"),
    ("same_text", lambda question, sql: question),
    ("same_text", lambda question, sql: "Which bottle costs 12?"),
    ("value_lost", lambda question, sql: "How many bottles are dear?"),
    ("value_lost", lambda question, sql: "How many bottles have a price above 13?"),
    ("value_lost", lambda question, sql: "How many bottles have a price above 12.5?"),
    ("value_lost", lambda question, sql: "How many bottles have a price above 112?"),
    ("gold_told", lambda question, sql: f"{question} Hint: {sql}"),
    ("gold_told", lambda question, sql: f"{question} (It is 9.)"),
    ("gold_told", lambda question, sql: f"{question} It is nine."),
]


@pytest.mark.parametrize(("code", "hook"), REFUSED)
def test_what_does_not_verify_is_refused_for_its_reason(wines, code, hook):
    question, report = reword(wines, DEAR, DEAR_SQL, hook, ["Which bottle costs 12?"])

    assert question == DEAR
    assert (report.rephrased, report.rephrasings_refused) == (0, {code: 1})
    assert report.hook_error == ("TimeoutError: the model does not answer" * (hook is fails))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT max(price) FROM bottle WHERE price > 12 AND price < 10",
        "SELECT name FROM bottle WHERE price > 12 AND colour = 'blue'",
        "SELECT count(*) FROM bottle AS a, bottle AS b WHERE a.price > 12 LIMIT 0",
    ],
)
def test_a_rewording_whose_task_the_expert_cannot_solve_is_refused(wines, sql):
    """The texts are fine; an episode with this gold is not, which only playing it shows."""
    text = "What number of bottles costs more than 12?"
    question, report = reword(wines, DEAR, sql, lambda question, sql: text)

    assert (question, report.rephrasings_refused) == (DEAR, {"expert_failed": 1})


def test_every_reason_is_reached_and_no_other_exists():
    assert {code for code, _ in REFUSED} | {"expert_failed"} == REPHRASINGS_REFUSED.keys()


@pytest.mark.parametrize(
    ("question", "sql", "forms"),
    [
        ("Which cost over 5,000 euros?", "SELECT a FROM t WHERE b > 5000", [["5000", "5,000"]]),
        ("The three dearest?", "SELECT a FROM t ORDER BY b DESC LIMIT 3", [["3", "three"]]),
        ("The dearest?", "SELECT a FROM t ORDER BY b DESC LIMIT 1", []),
        ("In May 2014?", "SELECT a FROM t WHERE d LIKE '2014-05-%'", [["2014-05", "May 2014"]]),
        ("In May of any year?", "SELECT strftime('%m', d) = '05' FROM t", [["05", "May"]]),
        (
            "On 3 May 2014?",
            "SELECT a FROM t WHERE d = '2014-05-03'",
            [["2014-05-03", "3 May 2014"]],
        ),
        ("From O'Hara?", "SELECT a FROM t WHERE b = 'O''Hara'", [["O'Hara"]]),
        ("A name with an A?", "SELECT a FROM t WHERE b LIKE 'A%'", [["A"]]),
        ("Above 2.5?", "SELECT a FROM t WHERE b > 2.5", [["2.5"]]),
        ("Is it here?", "SELECT T1.a2 FROM t AS T1 WHERE \"7\" = 'yes'", []),
    ],
)
def test_the_values_that_a_question_tells_are_found_in_its_sql(question, sql, forms):
    assert list(question_values(question, sql)) == forms


def test_the_article_does_not_stand_for_the_letter_a(wines):
    sql = "SELECT count(*) FROM bottle WHERE name LIKE 'A%'"
    asked = "How many bottles have a name that starts with A?"
    question, _ = reword(wines, asked, sql, lambda question, sql: "How many have a name?")

    assert question == asked


def test_a_search_with_a_hook_finds_the_same_tasks_in_its_words(wines):
    def please(question, sql):
        return f"Please tell me: {question[0].lower()}{question[1:]}"

    plain, polite = synthesize(wines, n=N), synthesize(wines, n=N, rephrase=please)

    assert [task.sql for task in polite.tasks] == [task.sql for task in plain.tasks]
    assert all(task.question.startswith("Please tell me: ") for task in polite.tasks)
    assert (polite.report.rephrased, polite.report.rephrasings_refused) == (N, {})


def test_a_hook_that_says_one_thing_for_all_is_believed_at_most_once(wines):
    report = SynthesisReport()
    tasks = stream(wines, rephrase=lambda question, sql: "What is it?", report=report)
    questions = [task.question for task in itertools.islice(tasks, N)]

    assert questions.count("What is it?") == report.rephrased <= 1
    assert len(set(questions)) == N
    assert report.rephrasings_refused.total() == N - report.rephrased


def test_a_hook_that_always_fails_leaves_all_questions_as_they_are(wines):
    made = synthesize(wines, n=N, rephrase=fails)

    assert [task.question for task in made.tasks] == [
        task.question for task in synthesize(wines, n=N).tasks
    ]
    assert made.report.rephrasings_refused == {"hook_failed": N}
