"""The readers of sqlgym: answers, SQL as text, questions, names and cells of a stranger's files."""

import atexit
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from sqlglot.errors import SqlglotError

from sqlgym.database import diagnosis, dialect, functions, render, statement_size, written_out
from sqlgym.database.database import Database, Limits
from sqlgym.database.description import describe_table
from sqlgym.database.schema import Schema, bare_name, nearest
from sqlgym.database.statement_size import StatementSize
from sqlgym.datasets import text_source
from sqlgym.envs import expert
from sqlgym.judging import (
    cells,
    recheck,
    several_results,
    spider_match,
    ties,
)
from sqlgym.judging.judge import check_answer, compare
from sqlgym.synthesis import canonical, english, nouns, parts, profiling, proof, rephrasing, roles
from sqlgym.synthesis import spoken_values as cell_values
from sqlgym.synthesis.conditions import forms
from sqlgym.tasks import hardness, splits
from sqlgym.tasks.splits import skeleton
from tests.growth.measuring import Reader
from toolgym.errors import EnvironmentFault, TaskRefused, ToolError
from toolgym.sanitize import encodable

_FOLDER = Path(tempfile.mkdtemp(prefix="toolgym-growth-"))
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
_PATH = _FOLDER / "singers.sqlite"
with sqlite3.connect(_PATH) as _connection:
    _connection.executescript(
        "CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INT);"
        "INSERT INTO singer VALUES (1, 'Joe', 52), (2, 'Ann', 43), (3, 'Bob', 43);"
    )
_connection.close()
SINGERS = Database(_PATH)
SCHEMA = SINGERS.schema
NAMES = SINGERS.query("SELECT name FROM singer")
SQL_BYTES = Limits().sql_bytes
SIZE = StatementSize(Limits(), {"adult": "CREATE VIEW adult AS SELECT name FROM singer"}, ["docs"])

ANSWER_MARKS = (
    "```", "```sql\n", "```\n", "Answer: ", "the final answer is ", "- ", "1. ", " | ", ", ",
    "; ", "\t", '"', "'", "name\n", "[", '["Joe"', "('Joe', ", "NULL", "1,000", "2024-01-02",
    "12:30", "%", "true", "-0.0", "1e5", "Jan ",
)  # fmt: skip
ANSWER_STARTS = ("Answer: ", "```", "```\n", "name\n", '"', "['", '[["', "- Joe\n", "1. Joe\n", "1")
ANSWER_ENDS = ("```", "\n```", '"', "']", '"]]', "\nAnn")
SQL_MARKS = (
    "SELECT ", "SELECT name FROM singer ", " FROM singer", " WHERE ", " AND ", " OR ", " NOT ",
    "(SELECT ", " UNION SELECT 1", " ORDER BY ", " GROUP BY ", " LIMIT 1", "count(", "name, ",
    "name=", "''", '""', "`", "[", "--", "/*", "*/", "-- \n", ";", "x'", "0x", ":a", "CASE WHEN ",
    " JOIN singer", "explain ", "WITH a AS (", "POSITION(", "EXTRACT(YEAR FROM ", "! =",
    "YEAR(CURDATE())", " IN (1, ", "1, ", "::", "||", "DISTINCT ", "<<", ">>",
)  # fmt: skip
SQL_STARTS = (
    "SELECT name FROM singer WHERE ",
    "SELECT ",
    "SELECT '",
    "/*",
    "--",
    "explain ",
    "WITH ",
)
SQL_ENDS = (" FROM singer", "'", "*/ 1", ")", ";", " ORDER BY 1 LIMIT 1")
NAME_MARKS = (
    "Name",
    "customer_",
    "ID",
    " or ",
    ", ",
    " of ",
    "s ",
    "ies",
    " the ",
    "(s)",
    "Km",
    "2",
)
ASKED_MARKS = (
    "'", "'a ", '"', "Ab ", "age ", "name of ", "older than ", "the average of ", "highest ",
    "1 or ", "3 May 2019 ", "2019-05-03 ", "1,000,", "not ", "no ",
    "sorted by ", "shared by ", "singers ",
    "between 1 and ", "number of ", "leave out ", "if there are several ", "in ", ", ", "- ", "\n",
)  # fmt: skip
QUESTION_MARKS = ("'", "''", '"', "1", "1.5", "select ", " from ", "?", "5,000")


def _as_file(text: str, read: Any, name: str = "a file") -> Any:
    file = _FOLDER / name
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    return read(file)


def _described(text: str) -> str:
    """What the agent is told of a table whose names, types and defaults are this text."""
    name = text.encode("utf-8", "replace").decode().replace("\0", "")[:200_000]
    name = name.replace('"', '""')
    literal = name.replace("'", "''")
    file = _FOLDER / "named.sqlite"
    file.unlink(missing_ok=True)
    connection = sqlite3.connect(file)
    try:
        connection.execute(f"""CREATE TABLE "t{name}" ("c{name}" TEXT DEFAULT '{literal}')""")
        connection.commit()
        schema = Schema.read(file)
    finally:
        connection.close()
    return describe_table(schema.find(schema.names[0]), schema)


def _sample(text: str) -> roles.Sample:
    return roles.Sample(text, "TEXT", 4, 0, 3, (text, f"{text}x", f"x{text}"))


def _csv(text: str) -> Any:
    schema = {
        "tables": [{"name": "t", "primary_key": [], "columns": [{"name": "a", "type": "TEXT"}]}]
    }
    folder = _FOLDER / "csv"
    folder.mkdir(exist_ok=True)
    (folder / "schema.json").write_text(json.dumps(schema))
    (folder / "t.csv").write_bytes(f"a\n{text}".encode("utf-8", "surrogatepass"))
    return text_source.read_database(folder)


def sql_reader(name: str, read: Any, *refuses: type[BaseException], **others: Any) -> Reader:
    """A reader of SQL as text."""
    return Reader(name, read, refuses, marks=SQL_MARKS, before=SQL_STARTS, after=SQL_ENDS, **others)


def _explained(text: str) -> ToolError:
    """What is said of a text that SQLite refuses, whatever the text is."""
    text = encodable(text)  # what is not, `check_text` refuses before
    error = sqlite3.OperationalError(f'near "{text[:200]}": syntax error')
    failure = diagnosis.Failure(error, None, None)
    return diagnosis.explain(failure, text, SCHEMA, Limits())


READERS = [
    Reader(
        "sqlgym.judging.judge.check_answer of one column",
        lambda text: check_answer([("Joe",), ("Ann",)], text, columns=("name",)),
        limit=50_000,
        marks=ANSWER_MARKS,
        before=ANSWER_STARTS,
        after=ANSWER_ENDS,
    ),
    Reader(
        "sqlgym.judging.judge.check_answer of a table",
        lambda text: check_answer(
            [("Joe", 5.5), ("2024-01-02", 43)], text, ordered=True, columns=("name", "n")
        ),
        limit=50_000,
        marks=ANSWER_MARKS,
        before=ANSWER_STARTS,
        after=ANSWER_ENDS,
    ),
    Reader(
        "sqlgym.judging.judge.check_answer of a number",
        lambda text: check_answer([(12.5,)], text, columns=(text,), question=text),
        limit=50_000,
        marks=ANSWER_MARKS[14:],
        before=("Answer: ", "-", "1", "1."),
        after=("%", "1", ".5"),
    ),
    Reader(
        "sqlgym.judging.judge.check_answer of items",
        lambda text: check_answer([("Joe",), ("Ann",)], [text, text[::-1]], columns=("name",)),
        marks=ANSWER_MARKS[12:],
        before=("Joe", "1"),
    ),
    Reader(
        "sqlgym.judging.cells.same_cell",
        lambda text: [cells.same_cell(gold, text) for gold in (1, 2.5, "Joe", "2024-01-02", b"")],
        marks=ANSWER_MARKS[14:],
        before=("-", "1", "1.", "1e", "2024-01-02 "),
        after=("%", "1", ".5", "T12:00"),
    ),
    Reader(
        "sqlgym.judging.cells.same_cell of a gold text",
        lambda text: (cells.same_cell(text, "Joe"), cells.same_cell(text, 1)),
        before=("-", "1"),
    ),
    Reader(
        "sqlgym.database.render.parse_rendered",
        render.parse_rendered,
        (ValueError,),
        marks=(" | ", '"', "\\", "\\x", "\\u", "... (", "name\n", "NULL"),
        before=("name\n", 'name\n"', '{"columns": ["name"], "rows": [['),
        after=('"', " | x", "\n... (1 more row)", "]]}"),
    ),
    Reader(
        "sqlgym.database.render.parse_row",
        render.parse_row,
        marks=(" | ", '"', "\\", '" | "'),
        before=('"', "a | "),
        after=('"', " | x"),
    ),
    Reader(
        "sqlgym.database.render.render",
        lambda text: render.render(
            (text, "b"), [(text, 1), (f"{text}x", text.encode("utf-8", "replace"))]
        ),
    ),
    Reader(
        "sqlgym.database.render.render_json",
        lambda text: render.render_json((text, "b"), [(text, 1), (f"{text}x", None)]),
    ),
    Reader(
        "sqlgym.envs.expert.read_answer",
        expert.read_answer,
        (ValueError,),
        marks=(" | ", "\n"),
        before=("name\n", "1"),
    ),
    Reader(
        "sqlgym.judging.recheck.cells_of",
        lambda text: [list(recheck.cells_of(text, ("a", "b"), rows)) for rows in (0, 1)],
        marks=ANSWER_MARKS,
        before=ANSWER_STARTS,
        after=ANSWER_ENDS,
    ),
    Reader(
        "sqlgym.judging.recheck.same_cell",
        lambda text: [recheck.same_cell(gold, text) for gold in (1, 2.5, "Joe", "2024-01-02")],
        marks=ANSWER_MARKS[18:],
        before=("-", "1", "1."),
    ),
    sql_reader(
        "sqlgym.database.database.Database.query", SINGERS.query, ToolError, limit=SQL_BYTES
    ),
    sql_reader(
        "sqlgym.database.written_out.weight",
        lambda text: [written_out.weight(text, {}, of) for of in ("words", "patterns", "depth")],
    ),
    sql_reader(
        "sqlgym.database.statement_size.StatementSize.refusal",
        lambda text: SIZE.refusal(text, text.lower()),
        limit=SQL_BYTES,
    ),
    Reader(
        "sqlgym.database.statement_size.is_plain",
        lambda text: statement_size.is_plain(encodable(text).lower(), "docs"),
        limit=SQL_BYTES,
        marks=("match ", "match '", "docs ", "docs = ", "docs('", "''", "'a' ", "= docs", "in "),
        before=("select * from docs where docs match '", "match", "docs"),
        after=("'", " match 'a'"),
    ),
    Reader(
        "sqlgym.database.functions.repetitions",
        lambda text: functions.repetitions((text, text, text)),
        limit=Limits().value_bytes,
        marks=("%c", "%.*c", "%9", "%", "%5.5c", "%-", "1", "l"),
        before=("%", "%1", "%1.", "1"),
        after=("c", "%c"),
    ),
    sql_reader(
        "sqlgym.database.diagnosis.explain",
        _explained,
        limit=SQL_BYTES,
    ),
    sql_reader("sqlgym.database.diagnosis.no_result", diagnosis.no_result),
    sql_reader(
        "sqlgym.database.dialect.construct_form",
        dialect.construct_form,
    ),
    sql_reader("sqlgym.database.dialect.blank_quoted", dialect.blank_quoted),
    Reader("sqlgym.database.dialect.function_form", dialect.function_form),
    Reader(
        "sqlgym.database.dialect.misread_name_form",
        lambda text: dialect.misread_name_form(text[:200], f"SELECT POSITION({text}"),
        marks=("POSITION(", " IN ", "INTERVAL "),
    ),
    sql_reader(
        "sqlgym.database.dialect.place_of_error",
        lambda text: dialect.place_of_error(encodable(text), f'near "{text[:1]}": syntax error'),
    ),
    sql_reader(
        "sqlgym.database.dialect.misspelt_keyword",
        lambda text: dialect.misspelt_keyword(text, len(text) // 2),
    ),
    sql_reader("sqlgym.database.dialect.expected_there", dialect.expected_there, limit=SQL_BYTES),
    sql_reader("sqlgym.database.dialect.too_much", dialect.too_much, limit=SQL_BYTES),
    sql_reader(
        "sqlgym.tasks.hardness.hardness",
        hardness.hardness,
        ValueError,
    ),
    sql_reader(
        "sqlgym.envs.expert.tables_of",
        expert.tables_of,
        SqlglotError,
    ),
    sql_reader(
        "sqlgym.judging.ties.tied_limit",
        lambda text: ties.tied_limit(SINGERS, text, NAMES),
    ),
    sql_reader("sqlgym.judging.ties.free_runs", lambda text: ties.free_runs(SINGERS, text, NAMES)),
    sql_reader(
        "sqlgym.judging.several_results.several_results",
        lambda text: several_results.several_results(SINGERS, text, NAMES),
    ),
    sql_reader(
        "sqlgym.judging.judge.compare",
        lambda text: compare(SINGERS, "SELECT name FROM singer", text),
        TaskRefused,
        limit=SQL_BYTES,
    ),
    sql_reader(
        "sqlgym.judging.judge.compare of a gold",
        lambda text: compare(SINGERS, text, "SELECT name FROM singer"),
        TaskRefused,
        limit=SQL_BYTES,
    ),
    sql_reader(
        "sqlgym.judging.spider_match.prepare",
        lambda text: spider_match.prepare(text, keep_distinct=False),
    ),
    sql_reader(
        "sqlgym.tasks.splits.skeleton",
        skeleton,
    ),
    Reader(
        "sqlgym.tasks.splits.plain_question",
        splits.plain_question,
        marks=QUESTION_MARKS,
    ),
    sql_reader(
        "sqlgym.synthesis.canonical.canonical_sql",
        canonical.canonical_sql,
        ValueError,
    ),
    Reader(
        "sqlgym.synthesis.rephrasing.question_values",
        lambda text: [
            list(rephrasing.question_values(text, "SELECT a FROM t WHERE b > 5000 AND c = 'Joe'")),
            list(rephrasing.question_values("Which of Joe's cost more than 5,000 euros?", text)),
        ],
        marks=QUESTION_MARKS,
        before=("'", '"', "1"),
        after=("'", '"'),
    ),
    Reader(
        "sqlgym.synthesis.rephrasing, whether it holds SQL",
        rephrasing._holds_sql,
        marks=("select ", " from "),
        before=("select ",),
    ),
    Reader(
        "sqlgym.synthesis.engine, its literals",
        lambda text: rephrasing.LITERAL.sub("?", text),
        marks=QUESTION_MARKS,
        before=("'", '"', "1"),
        after=("'", '"'),
    ),
    Reader(
        "sqlgym.synthesis.proof, what a small copy shows",
        lambda text: [
            proof._differs_by_rows(
                f"SELECT a FROM t WHERE {text} AND b > 1", f"SELECT a FROM t WHERE {text}"
            ),
            proof._counts_rows(f"SELECT count(*) FROM t WHERE {text}"),
            proof._ORDERED.fullmatch(f"SELECT a FROM t WHERE {text} ORDER BY {text} ASC LIMIT 1"),
        ],
        marks=(" AND ", " WHERE ", " ORDER BY ", "'", " LIMIT "),
        before=(" AND ", "'", " WHERE "),
    ),
    Reader("sqlgym.database.schema.nearest", lambda text: nearest(text, ("singer", "concert"))),
    Reader(
        "sqlgym.database.schema.bare_name",
        bare_name,
        marks=(".", '"', "[", "]"),
        before=('"', "[", "main."),
        after=('"', "]", ";"),
    ),
    Reader("sqlgym.database.description.describe_table of such names", _described, limit=400_000),
    Reader(
        "sqlgym.datasets.text_source.read_questions",
        lambda text: _as_file(text, text_source.read_questions),
        (EnvironmentFault,),
        marks=('{"id": "', '"question": "', "[{"),
        before=("[", '[{"id": "'),
        after=("]", '"}]'),
    ),
    Reader(
        "sqlgym.datasets.text_source.read_database",
        _csv,
        (EnvironmentFault,),
        marks=('"', '""', ",", '"\n'),
        before=('"',),
        after=('"', "\n"),
    ),
    Reader(
        "sqlgym.datasets.text_source, its numbers",
        lambda text: (text_source._INTEGER.fullmatch(text), text_source._REAL.fullmatch(text)),
        before=("-", "1.", "1"),
    ),
    Reader(
        "sqlgym.synthesis.parts.words_of",
        parts.words_of,
        marks=NAME_MARKS,
        before=("customer_",),
    ),
    Reader(
        "sqlgym.synthesis.parts.is_readable",
        lambda text: (parts.is_readable(text), parts.is_plain(text)),
        marks=NAME_MARKS,
        before=("a_",),
    ),
    Reader(
        "sqlgym.synthesis.nouns.column_noun",
        lambda text: [nouns.column_noun(text, ("customer",), number) for number in (False, True)],
        marks=NAME_MARKS,
        before=("customer_", "length_"),
        after=("_km", "_id"),
    ),
    Reader("sqlgym.synthesis.nouns.table_noun", nouns.table_noun, marks=NAME_MARKS),
    Reader(
        "sqlgym.synthesis.profiling.is_key_name",
        lambda text: profiling.is_key_name(text, ("singer",)),
    ),
    Reader("sqlgym.synthesis.english.plural", english.plural, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.english.singular", english.singular, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.english.a", english.a, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.english.possessive", english.possessive, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.english.sentence", english.sentence, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.english.is_participle", english.is_participle, marks=NAME_MARKS),
    Reader(
        "sqlgym.synthesis.roles.role_of",
        lambda text: roles.role_of(_sample(text)),
        marks=("2024-01-02", "12:30", "-", "1."),
        before=("2024-01-02 ", "-", "1."),
    ),
    Reader("sqlgym.synthesis.roles.is_typable", roles.is_typable),
    Reader(
        "sqlgym.synthesis.english.stands_alone",
        lambda text: (
            english.stands_alone(text[:100], text),
            english.stands_alone(text, f"a {text}"),
        ),
    ),
    Reader(
        "sqlgym.synthesis.proof, its alphabet",
        lambda text: proof._check_alphabet([text, f"{text}z"]),
        (proof.Rejected,),
    ),
    Reader("sqlgym.synthesis.spoken_values.quoted_text", cell_values.quoted_text),
    Reader(
        "sqlgym.synthesis.spoken_values, whether it is a proper name",
        cell_values._PROPER.fullmatch,
        marks=("Ab ", "Mc", "de ", "'", ". "),
        before=("Ab",),
    ),
    Reader(
        "sqlgym.synthesis.conditions.forms, its articles",
        forms._WITH_ARTICLE.match,
        marks=("United ", " Republic", " of ", "States"),
    ),
]
