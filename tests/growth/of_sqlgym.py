"""The readers of sqlgym: answers, SQL as text, questions, names and cells of a stranger's files."""

import atexit
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from sqlglot.errors import SqlglotError

from sqlgym import (
    bare_columns,
    bounded_format,
    diagnosis,
    dialect,
    expert,
    hardness,
    recheck,
    recheck_answers,
    render,
    row_orders,
    searches,
    several_results,
    spider_match,
    splits,
    syntax,
    text_source,
    ties,
    values,
    written_out,
)
from sqlgym.database import Database, Limits
from sqlgym.description import describe_table
from sqlgym.judging import check_answer, compare
from sqlgym.parsing import parse
from sqlgym.schema import Schema, bare_name, nearest
from sqlgym.skeleton import skeleton
from sqlgym.statement_size import StatementSize
from sqlgym.synthesis import (
    canonical,
    condition_forms,
    english,
    labels,
    naming,
    nouns,
    proof,
    rephrasing,
    roles,
)
from sqlgym.synthesis import values as cell_values
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
QUESTION_MARKS = ("'", "''", '"', "1", "1.5", "select ", " from ", "?", "5,000")


def _as_file(text: str, read: Any, name: str = "a file") -> Any:
    file = _FOLDER / name
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    return read(file)


def _described(text: str) -> str:
    """What the agent is told of a table whose names, types and defaults are this text."""
    name = text.encode("utf-8", "replace").decode().replace("\0", "").replace('"', '""')[:400_000]
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
        "sqlgym.judging.check_answer of one column",
        lambda text: check_answer([("Joe",), ("Ann",)], text, columns=("name",)),
        limit=50_000,
        marks=ANSWER_MARKS,
        before=ANSWER_STARTS,
        after=ANSWER_ENDS,
        covers=("sqlgym.reading", "sqlgym.answers", "sqlgym.nfc"),
    ),
    Reader(
        "sqlgym.judging.check_answer of a table",
        lambda text: check_answer(
            [("Joe", 5.5), ("2024-01-02", 43)], text, ordered=True, columns=("name", "n")
        ),
        limit=50_000,
        marks=ANSWER_MARKS,
        before=ANSWER_STARTS,
        after=ANSWER_ENDS,
    ),
    Reader(
        "sqlgym.judging.check_answer of a number",
        lambda text: check_answer([(12.5,)], text),
        limit=50_000,
        marks=ANSWER_MARKS[14:],
        before=("Answer: ", "-", "1", "1."),
        after=("%", "1", ".5"),
    ),
    Reader(
        "sqlgym.judging.check_answer of items",
        lambda text: check_answer([("Joe",), ("Ann",)], [text, text[::-1]], columns=("name",)),
        marks=ANSWER_MARKS[12:],
        before=("Joe", "1"),
    ),
    Reader(
        "sqlgym.values.same_cell",
        lambda text: [values.same_cell(gold, text) for gold in (1, 2.5, "Joe", "2024-01-02", b"")],
        marks=ANSWER_MARKS[14:],
        before=("-", "1", "1.", "1e", "2024-01-02 "),
        after=("%", "1", ".5", "T12:00"),
        covers=("sqlgym.values",),
    ),
    Reader(
        "sqlgym.values.same_cell of a gold text",
        lambda text: (values.same_cell(text, "Joe"), values.same_cell(text, 1)),
        before=("-", "1"),
    ),
    Reader(
        "sqlgym.render.parse_rendered",
        render.parse_rendered,
        (ValueError,),
        marks=(" | ", '"', "\\", "\\x", "\\u", "... (", "name\n", "NULL"),
        before=("name\n", 'name\n"', '{"columns": ["name"], "rows": [['),
        after=('"', " | x", "\n... (1 more row)", "]]}"),
        covers=("sqlgym.render",),
    ),
    Reader(
        "sqlgym.render.parse_row",
        render.parse_row,
        marks=(" | ", '"', "\\", '" | "'),
        before=('"', "a | "),
        after=('"', " | x"),
    ),
    Reader(
        "sqlgym.render.render",
        lambda text: render.render(
            (text, "b"), [(text, 1), (f"{text}x", text.encode("utf-8", "replace"))]
        ),
    ),
    Reader(
        "sqlgym.render.render_json",
        lambda text: render.render_json((text, "b"), [(text, 1), (f"{text}x", None)]),
    ),
    Reader(
        "sqlgym.expert.read_answer",
        expert.read_answer,
        (ValueError,),
        marks=(" | ", "\n"),
        before=("name\n", "1"),
        covers=("sqlgym.expert",),
    ),
    Reader(
        "sqlgym.recheck_answers.cells_of",
        lambda text: [list(recheck_answers.cells_of(text, ("a", "b"), rows)) for rows in (0, 1)],
        marks=ANSWER_MARKS,
        before=ANSWER_STARTS,
        after=ANSWER_ENDS,
        covers=("sqlgym.recheck_answers",),
    ),
    Reader(
        "sqlgym.recheck_answers.same_cell",
        lambda text: [
            recheck_answers.same_cell(gold, text) for gold in (1, 2.5, "Joe", "2024-01-02")
        ],
        marks=ANSWER_MARKS[18:],
        before=("-", "1", "1."),
    ),
    Reader(
        "sqlgym.recheck.gold_of",
        lambda text: recheck.gold_of(_PATH, text),
        (sqlite3.Error, sqlite3.Warning, ValueError, UnicodeError),
        limit=SQL_BYTES,
        marks=SQL_MARKS,
        before=SQL_STARTS,
        after=SQL_ENDS,
        covers=("sqlgym.recheck",),
    ),
    sql_reader("sqlgym.database.Database.query", SINGERS.query, ToolError, limit=SQL_BYTES),
    sql_reader(
        "sqlgym.written_out.weight",
        lambda text: [written_out.weight(text, {}, of) for of in ("words", "patterns", "depth")],
        covers=("sqlgym.sql_words",),
    ),
    sql_reader(
        "sqlgym.statement_size.StatementSize.refusal",
        lambda text: SIZE.refusal(text, text.lower()),
        limit=SQL_BYTES,
        covers=("sqlgym.statement_size",),
    ),
    Reader(
        "sqlgym.searches.is_plain",
        lambda text: searches.is_plain(encodable(text).lower(), "docs"),
        limit=SQL_BYTES,
        marks=("match ", "match '", "docs ", "docs = ", "docs('", "''", "'a' ", "= docs", "in "),
        before=("select * from docs where docs match '", "match", "docs"),
        after=("'", " match 'a'"),
        covers=("sqlgym.searches",),
    ),
    Reader(
        "sqlgym.bounded_format.repetitions",
        lambda text: bounded_format.repetitions((text, text, text)),
        limit=Limits().value_bytes,
        marks=("%c", "%.*c", "%9", "%", "%5.5c", "%-", "1", "l"),
        before=("%", "%1", "%1.", "1"),
        after=("c", "%c"),
        covers=("sqlgym.bounded_format",),
    ),
    sql_reader(
        "sqlgym.diagnosis.explain", _explained, limit=SQL_BYTES, covers=("sqlgym.diagnosis",)
    ),
    sql_reader("sqlgym.diagnosis.no_result", diagnosis.no_result),
    sql_reader("sqlgym.dialect.construct_form", dialect.construct_form, covers=("sqlgym.dialect",)),
    sql_reader("sqlgym.dialect.blanked", dialect.blanked),
    Reader("sqlgym.dialect.function_form", dialect.function_form),
    Reader(
        "sqlgym.dialect.misread_name_form",
        lambda text: dialect.misread_name_form(text[:200], f"SELECT POSITION({text}"),
        marks=("POSITION(", " IN ", "INTERVAL "),
    ),
    sql_reader(
        "sqlgym.syntax.place_of_error",
        lambda text: syntax.place_of_error(encodable(text), f'near "{text[:1]}": syntax error'),
        covers=("sqlgym.syntax",),
    ),
    sql_reader(
        "sqlgym.syntax.misspelt_keyword", lambda text: syntax.misspelt_keyword(text, len(text) // 2)
    ),
    sql_reader("sqlgym.syntax.expected_there", syntax.expected_there, limit=SQL_BYTES),
    sql_reader("sqlgym.syntax.too_much", syntax.too_much, limit=SQL_BYTES),
    sql_reader(
        "sqlgym.hardness.hardness", hardness.hardness, ValueError, covers=("sqlgym.hardness",)
    ),
    sql_reader(
        "sqlgym.expert.tables_of", expert.tables_of, SqlglotError, covers=("sqlgym.expert",)
    ),
    sql_reader(
        "sqlgym.bare_columns.open_group",
        lambda text: bare_columns.open_group(SINGERS, text),
        covers=("sqlgym.bare_columns",),
    ),
    sql_reader(
        "sqlgym.ties.tied_limit",
        lambda text: ties.tied_limit(SINGERS, text, NAMES),
        covers=("sqlgym.ties",),
    ),
    sql_reader("sqlgym.ties.free_runs", lambda text: ties.free_runs(SINGERS, text, NAMES)),
    sql_reader(
        "sqlgym.several_results.several_results",
        lambda text: several_results.several_results(SINGERS, text, NAMES),
        covers=("sqlgym.several_results", "sqlgym.free_choices"),
    ),
    sql_reader(
        "sqlgym.row_orders.other_result",
        lambda text: row_orders.other_result(SINGERS, text, NAMES, parse(text)),
        SqlglotError,
        covers=("sqlgym.row_orders",),
    ),
    sql_reader(
        "sqlgym.judging.compare",
        lambda text: compare(SINGERS, "SELECT name FROM singer", text),
        TaskRefused,
        limit=SQL_BYTES,
    ),
    sql_reader(
        "sqlgym.judging.compare of a gold",
        lambda text: compare(SINGERS, text, "SELECT name FROM singer"),
        TaskRefused,
        limit=SQL_BYTES,
    ),
    sql_reader(
        "sqlgym.spider_match.prepared",
        lambda text: spider_match.prepared(text, keep_distinct=False),
        covers=("sqlgym.spider_match",),
    ),
    sql_reader("sqlgym.skeleton.skeleton", skeleton, covers=("sqlgym.skeleton",)),
    Reader(
        "sqlgym.splits.plain_question",
        splits.plain_question,
        marks=QUESTION_MARKS,
        covers=("sqlgym.splits",),
    ),
    sql_reader(
        "sqlgym.synthesis.canonical.canonical_sql",
        canonical.canonical_sql,
        ValueError,
        covers=("sqlgym.synthesis.canonical", "sqlgym.synthesis.world"),
    ),
    Reader(
        "sqlgym.synthesis.rephrasing.told_values",
        lambda text: [
            list(rephrasing.told_values(text, "SELECT a FROM t WHERE b > 5000 AND c = 'Joe'")),
            list(rephrasing.told_values("Which of Joe's cost more than 5,000 euros?", text)),
        ],
        marks=QUESTION_MARKS,
        before=("'", '"', "1"),
        after=("'", '"'),
        covers=("sqlgym.synthesis.rephrasing",),
    ),
    Reader(
        "sqlgym.synthesis.rephrasing, whether it holds SQL",
        rephrasing._holds_sql,
        marks=("select ", " from "),
        before=("select ",),
    ),
    Reader(
        "sqlgym.synthesis.search, its literals",
        lambda text: rephrasing.LITERAL.sub("?", text),
        marks=QUESTION_MARKS,
        before=("'", '"', "1"),
        after=("'", '"'),
    ),
    Reader("sqlgym.schema.nearest", lambda text: nearest(text, ("singer", "concert"))),
    Reader(
        "sqlgym.schema.bare_name",
        bare_name,
        marks=(".", '"', "[", "]"),
        before=('"', "[", "main."),
        after=('"', "]", ";"),
    ),
    Reader("sqlgym.description.describe_table of such names", _described, limit=400_000),
    Reader(
        "sqlgym.text_source.read_questions",
        lambda text: _as_file(text, text_source.read_questions),
        (EnvironmentFault,),
        marks=('{"id": "', '"question": "', "[{"),
        before=("[", '[{"id": "'),
        after=("]", '"}]'),
    ),
    Reader(
        "sqlgym.text_source.read_database",
        _csv,
        (EnvironmentFault,),
        marks=('"', '""', ",", '"\n'),
        before=('"',),
        after=('"', "\n"),
        covers=("sqlgym.text_source",),
    ),
    Reader(
        "sqlgym.text_source, its numbers",
        lambda text: (text_source._INTEGER.fullmatch(text), text_source._REAL.fullmatch(text)),
        before=("-", "1.", "1"),
    ),
    Reader(
        "sqlgym.synthesis.naming.words_of",
        naming.words_of,
        marks=NAME_MARKS,
        before=("customer_",),
        covers=("sqlgym.synthesis.naming",),
    ),
    Reader(
        "sqlgym.synthesis.naming.is_readable", naming.is_readable, marks=NAME_MARKS, before=("a_",)
    ),
    Reader(
        "sqlgym.synthesis.nouns.column_noun",
        lambda text: [nouns.column_noun(text, ("customer",), number) for number in (False, True)],
        marks=NAME_MARKS,
        before=("customer_", "length_"),
        after=("_km", "_id"),
        covers=("sqlgym.synthesis.english", "sqlgym.synthesis.nouns"),
    ),
    Reader("sqlgym.synthesis.nouns.table_noun", nouns.table_noun, marks=NAME_MARKS),
    Reader("sqlgym.synthesis.labels.named", lambda text: labels.named(text, ("singer",))),
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
        covers=("sqlgym.synthesis.roles",),
    ),
    Reader("sqlgym.synthesis.roles.is_typable", roles.is_typable),
    Reader(
        "sqlgym.synthesis.proof, its guess",
        lambda text: (proof._stands_in(text[:100], text), proof._stands_in(text, f"a {text}")),
    ),
    Reader(
        "sqlgym.synthesis.proof, its alphabet",
        lambda text: proof._check_alphabet([text, f"{text}z"]),
        (proof.Rejected,),
        covers=("sqlgym.synthesis.proof",),
    ),
    Reader("sqlgym.synthesis.values.quoted_text", cell_values.quoted_text),
    Reader(
        "sqlgym.synthesis.values, whether it is a proper name",
        cell_values._PROPER.fullmatch,
        marks=("Ab ", "Mc", "de ", "'", ". "),
        before=("Ab",),
        covers=("sqlgym.synthesis.values",),
    ),
    Reader(
        "sqlgym.synthesis.condition_forms, its articles",
        condition_forms._WITH_ARTICLE.match,
        marks=("United ", " Republic", " of ", "States"),
        covers=("sqlgym.synthesis.condition_forms", "sqlgym.synthesis.search"),
    ),
]
