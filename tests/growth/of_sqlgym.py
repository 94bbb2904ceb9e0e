"""The readers of sqlgym: answers, SQL as text, questions, names and cells of a stranger's files."""

import atexit
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from sqlglot.errors import SqlglotError

from sqlgym.database import diagnosis, functions, render
from sqlgym.database.database import Database
from sqlgym.database.description import describe_table
from sqlgym.database.dialects import in_sqlite
from sqlgym.database.guard import SQL_BYTES
from sqlgym.database.schema import Schema, Table, bare_name, nearest
from sqlgym.database.statement_size import StatementSize
from sqlgym.datasets.spider import read_entries
from sqlgym.envs import expert
from sqlgym.judging import (
    cells,
    recheck,
    several_results,
    spider_match,
    ties,
)
from sqlgym.judging.judge import check_answer, compare
from sqlgym.synthesis import (
    canonical,
    engine,
    english,
    lexicon,
    nouns,
    references,
    rephrasing,
    roles,
)
from sqlgym.synthesis import spoken_values as cell_values
from sqlgym.tasks import hardness, splits
from sqlgym.tasks.splits import skeleton
from tests.growth.measuring import Reader
from toolgym.errors import ConfigurationError, TaskRefused, ToolError
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
SIZE = StatementSize({"adult": "create view adult as select name from singer"}, ["docs"])
PRINTF = functions.bounded("printf", 100_000)

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


def sql_reader(name: str, read: Any, *refuses: type[BaseException], **others: Any) -> Reader:
    """A reader of SQL as text."""
    return Reader(name, read, refuses, marks=SQL_MARKS, before=SQL_STARTS, after=SQL_ENDS, **others)


def _explained(text: str) -> ToolError:
    """The error for a text that SQLite refuses, whatever the text is."""
    text = encodable(text)  # `Database.query` refuses what is not
    message = f'near "{text[:200]}": syntax error'
    return diagnosis.explain_message(message, text, SCHEMA, lambda _: False)


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
        "sqlgym.database.statement_size.StatementSize.refusal",
        lambda text: SIZE.refusal(text.lower()),
        limit=SQL_BYTES,
    ),
    Reader(
        "sqlgym.database.functions.bounded",
        lambda text: PRINTF(text, text, text),
        (OverflowError, UnicodeError),
        limit=100_000,
        marks=("%c", "%.*c", "%9", "%", "%5.5c", "%-", "1", "l"),
        before=("%", "%1", "%1.", "1"),
        after=("c", "%c"),
    ),
    sql_reader("sqlgym.database.diagnosis.explain_message", _explained, limit=SQL_BYTES),
    sql_reader("sqlgym.database.dialects.in_sqlite", lambda text: list(in_sqlite(text))),
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
        "sqlgym.synthesis.engine, its literals",
        lambda text: engine._LITERAL.sub("?", text),
        marks=QUESTION_MARKS,
        before=("'", '"', "1"),
        after=("'", '"'),
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
        "sqlgym.datasets.spider.read_entries",
        lambda text: _as_file(text, read_entries),
        (ConfigurationError,),
        marks=('{"id": "', '"question": "', "[{"),
        before=("[", '[{"id": "'),
        after=("]", '"}]'),
    ),
    Reader(
        "sqlgym.synthesis.lexicon.words_of",
        lexicon.words_of,
        marks=NAME_MARKS,
        before=("customer_",),
    ),
    Reader(
        "sqlgym.synthesis.lexicon.is_readable",
        lambda text: (lexicon.is_readable(text), lexicon.abbreviates([text])),
        marks=NAME_MARKS,
        before=("a_",),
    ),
    Reader(
        "sqlgym.synthesis.nouns.column_noun",
        lambda text: [
            nouns.column_noun(text, ("customer",), kind) for kind in ("", "date", "count")
        ],
        marks=NAME_MARKS,
        before=("customer_", "length_"),
        after=("_km", "_id"),
    ),
    Reader("sqlgym.synthesis.nouns.table_noun", nouns.table_noun, marks=NAME_MARKS),
    Reader(
        "sqlgym.synthesis.references.is_key_name",
        lambda text: references.is_key_name(text, Table(text, ())),
    ),
    Reader("sqlgym.synthesis.english.plural", english.plural, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.english.singular", english.singular, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.english.a", english.a, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.english.possessive", english.possessive, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.english.sentence", english.sentence, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.english.is_participle", english.is_participle, marks=NAME_MARKS),
    Reader(
        "sqlgym.synthesis.roles.role_of",
        lambda text: roles.role_of(text, [text], 1, 1, False),
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
    Reader("sqlgym.synthesis.spoken_values.quoted_text", cell_values.quoted_text),
    Reader(
        "sqlgym.synthesis.spoken_values, whether it is a proper name",
        cell_values._PROPER.fullmatch,
        marks=("Ab ", "Mc", "de ", "'", ". "),
        before=("Ab",),
    ),
]
