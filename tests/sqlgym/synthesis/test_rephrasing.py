"""Rephrased questions: a reply that keeps the values is kept, others are refused for a reason."""

import json
import re
import sqlite3
from contextlib import closing

import pytest

from sqlgym import load_tasks
from sqlgym.synthesis.rephrasing import (
    MOST_CHARS,
    question_values,
    rephrase,
)
from sqlgym.tasks.task import SqlTask
from tests.chat_server import ScriptedServer
from tests.toolgym.commands.command_line import run_here

DEAR = "How many bottles have a price above 12?"
DEAR_SQL = "SELECT count(*) FROM bottle WHERE price > 12"
OTHER = "Which bottle costs 12?"


pytest.importorskip("openai", reason="needs the extra openai")


@pytest.fixture(scope="module")
def wines(tmp_path_factory):
    """A database of bottles."""
    path = tmp_path_factory.mktemp("wines") / "wines.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bottle (name TEXT, price INTEGER)")
        rows = [(f"Hill {n}", 5 + 7 * n % 40) for n in range(12)]
        connection.executemany("INSERT INTO bottle VALUES (?, ?)", rows)
        connection.commit()
    return path


def reply_to(wines, question, sql, text):
    """What becomes of a reply: the new question or None, and the reasons of refusals."""
    tasks = [SqlTask("one", question, gold_sql=sql, database=wines)]
    tasks.append(SqlTask("two", OTHER, gold_sql="SELECT 1", database=wines))
    questions, refused = rephrase(tasks, lambda requests: [text, "Name the bottle that costs 12."])
    return questions[0], refused


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
    question, refused = reply_to(wines, DEAR, DEAR_SQL, text)
    assert question == " ".join(text.split()).replace("count", "Count")
    assert not refused


REFUSED = [
    ("no_text", ""),
    ("no_text", " \n"),
    ("no_text", f"{DEAR} {'Please. ' * MOST_CHARS}"),
    ("no_text", f"{DEAR} Now\x00"),
    ("no_text", f"{DEAR} Now\ud800"),
    ("same_text", DEAR),
    ("same_text", f"{OTHER.lower()}"),
    ("value_lost", "How many bottles are dear?"),
    ("value_lost", "How many bottles have a price above 13?"),
    ("value_lost", "How many bottles have a price above 12.5?"),
    ("value_lost", "How many bottles have a price above 112?"),
    ("value_lost", "How many bottles have a price above -12?"),
    ("value_lost", "How many bottles have a price above 12%?"),
    ("value_lost", "How many bottles have a price above 12,000?"),
    ("gold_told", f"{DEAR} Hint: {DEAR_SQL}"),
    ("gold_told", f"{DEAR} (It is 9.)"),
    ("gold_told", f"{DEAR} It is nine."),
]


@pytest.mark.parametrize(("code", "text"), REFUSED)
def test_a_reply_is_refused_for_its_reason(wines, code, text):
    assert reply_to(wines, DEAR, DEAR_SQL, text) == (None, {code: 1})


@pytest.mark.parametrize(
    ("question", "sql", "forms"),
    [
        ("Which cost over 5,000 euros?", "SELECT a FROM t WHERE b > 5000", [["5000", "5,000"]]),
        ("The three dearest?", "SELECT a FROM t ORDER BY b DESC LIMIT 3", [["3", "three"]]),
        ("The dearest?", "SELECT a FROM t ORDER BY b DESC LIMIT 1", []),
        ("In May 2014?", "SELECT a FROM t WHERE d LIKE '2014-05-%'", [["2014-05", "May 2014"]]),
        ("In May of any year?", "SELECT strftime('%m', d) = '05' FROM t", [["05", "May"]]),
        ("On 3 May 2014?", "SELECT d = '2014-05-03' FROM t", [["2014-05-03", "3 May 2014"]]),
        ("In 2014?", "SELECT a FROM t WHERE d LIKE '2014-99%'", []),
        ("From O'Hara?", "SELECT a FROM t WHERE b = 'O''Hara'", [["O'Hara"]]),
        ("A name with an A?", "SELECT a FROM t WHERE b LIKE 'A%'", [["A"]]),
        ("Above 2.5?", "SELECT a FROM t WHERE b > 2.5", [["2.5"]]),
        ("Is it here?", "SELECT T1.a2 FROM t AS T1 WHERE \"7\" = 'yes'", []),
    ],
)
def test_the_values_that_a_question_names_are_found_in_its_sql(question, sql, forms):
    assert list(question_values(question, sql)) == forms


def test_the_article_does_not_count_as_the_letter_a(wines):
    sql = "SELECT count(*) FROM bottle WHERE name LIKE 'A%'"
    asked = "How many bottles have a name that starts with A?"
    assert reply_to(wines, asked, sql, "How many have a name?") == (None, {"value_lost": 1})


def test_a_question_without_an_answer_is_rephrased_with_its_numbers_and_quotations(wines):
    task = SqlTask("x", "Who grew the 12 plums of 'Ann'?", database=wines, answerable=False)
    kept, _ = rephrase([task], lambda requests: ["Name the grower of the 12 plums of 'Ann'."])
    lost, refused = rephrase([task], lambda requests: ["Name the grower of the plums of 'Ann'."])
    assert (kept, lost) == (["Name the grower of the 12 plums of 'Ann'."], [None])
    assert refused == {"value_lost": 1}


# The command --------------------------------------------------------------------------------------

CITIES = ("Oslo", "Rome", "Lima", "Cairo", "Bern")
N = 75


@pytest.fixture
def written(request, wines, tmp_path, monkeypatch):
    """A folder with questions in two splits, each with a number and a name; one cannot be used."""
    ending = getattr(request, "param", "json")
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tasks"
    (folder / "database" / "wines").mkdir(parents=True)
    (folder / "database" / "wines" / "wines.sqlite").write_bytes(wines.read_bytes())
    entries = [
        {
            "id": f"q{n}",
            "db_id": "wines",
            "question": f"How many bottles of {CITIES[n % 5]} have a price above {n + 20}?",
            "query": "SELECT count(*) FROM bottle"
            f" WHERE name = '{CITIES[n % 5]}' AND price > {n + 20}",
            "template": "count",
        }
        for n in range(N)
    ]
    for split, part in (("train", [*entries[:60], {"db_id": "wines"}]), ("dev", entries[60:])):
        lines = "\n".join(map(json.dumps, part))
        text = json.dumps(part) if ending == "json" else lines
        (folder / f"{split}.{ending}").write_text(text)
    return folder


def rewording(request):
    """A reply that drops the city in a third of the requests, by the number in the question."""
    asked = request["messages"][-1]["content"]
    city, number = re.search(r"of (\w+) have a price above (\d+)", asked).groups()
    return f"Count the {f'{city} ' * bool(int(number) % 3)}bottles dearer than {number}, please."


def command(written, url, out, *more):
    return run_here(
        *("tasks", "rephrase", written, "--policy", "openai:m", "--base-url", url),
        *("--out", out, "--policy-set", "retries=0", "--policy-set", "concurrency=8", *more),
    )


def entries_of(folder):
    for file in sorted([*folder.glob("*.json"), *folder.glob("*.jsonl")]):
        text = file.read_text()
        is_list = file.suffix == ".json"
        yield from json.loads(text) if is_list else map(json.loads, text.splitlines())


@pytest.mark.parametrize("written", ["json", "jsonl"], indirect=True)
def test_replies_that_drop_a_name_are_refused_and_all_others_kept(written, tmp_path):
    with ScriptedServer(rewording, latency=0.005) as server:
        done = command(written, server.url, tmp_path / "out", "--json")
        assert done.returncode == 0, done.stderr
        assert 1 < server.most_open <= 8
    result = json.loads(done.stdout)
    dropped = sum((n + 20) % 3 == 0 for n in range(N))
    assert (result["questions"], result["rephrased"], result["unusable"]) == (N, N - dropped, 1)
    assert result["refused"] == {"value_lost": dropped}

    for split in ("train", "dev"):
        old, new = (load_tasks(folder, split) for folder in (written, tmp_path / "out"))
        for before, after in zip(old, new, strict=True):
            assert (before.id, before.gold_sql) == (after.id, after.gold_sql)
            if before.problem is None:
                number = int(re.search(r"above (\d+)", before.question)[1])
                assert (before.question != after.question) is (number % 3 != 0)


def test_the_old_question_and_all_other_keys_and_files_are_kept(written, tmp_path):
    (written / "tables.json").write_text("[]")
    before = [entry for entry in entries_of(written) if "id" in entry]
    with ScriptedServer(rewording) as server:
        done = command(written, server.url, tmp_path / "out")
    assert "50 of 75 questions rephrased\nrefused: 25 (25 value_lost)" in done.stdout
    assert (tmp_path / "out" / "tables.json").read_text() == "[]"
    after = [entry for entry in entries_of(tmp_path / "out") if "id" in entry]
    assert [
        {**{k: v for k, v in new.items() if k != "original"}, "question": old["question"]}
        for old, new in zip(before, after, strict=True)
    ] == before
    changed = [(old, new) for old, new in zip(before, after, strict=True) if "original" in new]
    assert all(new["original"] == old["question"] != new["question"] for old, new in changed)
    assert len(changed) == 50
    assert "rephrased" in (tmp_path / "out" / "REPHRASING.md").read_text()


def test_a_failing_server_writes_nothing_and_the_next_run_asks_only_what_is_missing(
    written, tmp_path
):
    with ScriptedServer(rewording, faults=[None] * 64 + ["500"] * 30) as server:
        failed = command(written, server.url, tmp_path / "out")
        assert failed.returncode == 1
        assert "Read the server's log" in failed.stderr
        assert not (tmp_path / "out").exists()
        asked = len(server.requests)
        server.faults = ()
        again = command(written, server.url, tmp_path / "out")
        assert again.returncode == 0, again.stderr
        assert len(server.requests) - asked == N - 64


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--policy": "expert"}, "--policy must be a chat model on a server"),
        ({"tasks": "nowhere"}, "nowhere is not a folder with questions"),
        ({"--out": "here"}, "here already exists: choose another folder"),
        ({"--env": "aflowgym/Compose-v0"}, "does not support rephrasing"),
    ],
)
def test_what_cannot_be_rephrased_is_refused_before_a_request(
    written, tmp_path, monkeypatch, change, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "thesis.txt").write_text("years of work")
    with ScriptedServer(rewording) as server:
        given = {"tasks": "tasks", "--policy": "openai:m", "--base-url": server.url, "--out": "o"}
        given |= change
        options = [part for name in given if name != "tasks" for part in (name, given[name])]
        done = run_here("tasks", "rephrase", given["tasks"], *options)
        assert (done.returncode, server.requests) == (2, [])
    assert words in done.stderr
