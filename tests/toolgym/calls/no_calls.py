"""Messages that hold no call: what models say about tools, quote, echo, document and program."""

from collections.abc import Iterator
from random import Random

from tests.toolgym.calls.fixtures import FIXTURES
from toolgym.calls import FORMATS
from toolgym.calls.find import without_last_tokens

_PROSE = (
    "I could use {tool} to look at {table}, and then run a query.",
    "First {tool}, then query: that is how I would find the {table}.",
    "The tool {tool} takes one argument, table_name, for example {table}.",
    "{tool}(table_name) lists the columns of {table}; tables() lists the tables.",
    'With describe("{table}") one sees the columns, I think.',
    "Should I call {tool}? The question is about {table}, so perhaps.",
    "1. {tool}\n2. query\n3. answer",
    "- `{tool}`: lists the columns\n- `query`: runs SQL on {table}",
    "The answer is 5.",
    "There is no {table} in this database, as {tool} would show.",
    "| tool | argument |\n|---|---|\n| {tool} | table_name |",
    "A call has a name and arguments; mine would name {tool} and {table}.",
    "Let me think about {table}: is it {tool} or query?\nI am not sure.",
    "{tool}: the columns of {table}\nquery: rows",
)
_RUNNING = (
    "My Action: {tool} would come first, with the Action Input: {table}.",
    "As the next Action: I would rather ask about {table} than {tool} it.",
    "Thought: I know it now.\nFinal Answer: {table}",
    "Action: I have nothing left to do.",
    "Action: Finish\nThe answer is {table}.",
    "Thought: {tool} is no use here.\nAction: None\nAction Input: None",
    "Call: the name of {tool} is enough, nothing else.",
    "functools is a module of Python; {tool} is not in it.",
)
_SQL = (
    "```sql\nSELECT name FROM {table} WHERE age > 3;\n```",
    "I would run\n\n```sql\nSELECT count(*)\nFROM {table}\n```\n\nand count.",
    "SELECT [name] FROM {table} WHERE a < b AND c > d",
    "```\nSELECT '<b>' || name FROM {table};\n```",
    "WITH t AS (SELECT * FROM {table}) SELECT * FROM t",
)
_PROGRAMS = (
    '```python\nresult = {tool}(table_name="{table}")\nprint(result)\n```',
    '```python\ndef look():\n    {tool}(table_name="{table}")\n\nlook()\n```',
    '```python\nimport tools\n\n{tool}(table_name="{table}")\nprint(1)\n```',
    '```python\nfor name in names:\n    {tool}(table_name="{table}")\n```',
    'def f(x):\n    {tool}(table_name="{table}")\n    return x',
    'rows = query(sql="SELECT 1")\n{tool}(table_name="{table}")',
    '```python\nprint({tool}("{table}"))\n```',
    '```js\nconst rows = {tool}("{table}");\nconsole.log(rows);\n```',
    '```python\nclass A:\n    def f(self):\n        return {tool}("{table}")\n```',
    'if ready:\n    {tool}(table_name="{table}")',
    'with db:\n    {tool}("{table}")',
    ">>> {tool}(\"{table}\")\n['name', 'age']",
)
_DATA = (
    '{{"name": "Alice", "age": 3, "table": "{table}"}}',
    '[{{"name": "{table}"}}, {{"name": "Bob"}}]',
    '```json\n{{"columns": ["name", "age"], "rows": [[1, 2]]}}\n```',
    "name,age\n{table},3\nBob,4",
    "<row><name>{table}</name></row>",
    "<ul><li>{tool}</li><li>query</li></ul>",
    "f(x) = 3x + 2, so f({table}) is 5 [1, 2, 3].",
)
_NAMES = ("<function-name>", "{tool_name}", "function_name", "...", "your_function", "tool_name")
_QUOTES = (("`", "`"), ('"', '"'), ("'", "'"), ("\u201c", "\u201d"))


def _quoted(draw: Random) -> str:
    """A sentence that quotes a whole call in some format."""
    entry = draw.choice(FORMATS)
    fixture = draw.choice([each for each in FIXTURES if each.format == entry.name])
    opening, closing = draw.choice(_QUOTES)
    message = fixture.two if fixture.two and draw.random() < 0.3 else fixture.one
    text = without_last_tokens(message).strip()
    if entry.name in ("harmony", "muse"):
        text = text[text.index("<") :]  # a recipient before the mark is no part of the call
    if entry.marks == () or entry.name in ("functionary-v2", "functionary-v2.5", "glm-4"):
        text = text.replace("\n", " ")  # a line of its own would be a call
    return draw.choice(
        (
            f"A model of this kind writes {opening}{text}{closing} when it looks something up.",
            f"In the format {entry.name} a call is {opening}{text}{closing}.",
            f"You could answer with {opening}{text}{closing}, and I would read it.",
        )
    )


def _documented(draw: Random) -> str:
    """The documentation of some format: a message with placeholders.

    That of MCP's tags is read as a malformed call.
    """
    entry = draw.choice([each for each in FORMATS if each.marks and each.name != "mcp"])
    fixture = draw.choice([each for each in FIXTURES if each.format == entry.name])
    text = without_last_tokens(fixture.one).replace("describe", draw.choice(_NAMES))
    text = text.replace("table_name", "param").replace("singer", "value").strip()
    fence = draw.choice(("", "```\n"))
    before = f"For each call the format of {entry.families[0]} is:\n"
    return f"{before}{fence}{text}\n{fence.strip()}"


def _echoed(draw: Random) -> str:
    """A result that the model repeats, in the marks of its family; it may look like a call."""
    pairs = [each.result for each in FORMATS if each.result and each.result[1]]
    opening, closing = draw.choice(pairs)
    body = draw.choice(
        (
            '{"columns": ["name"], "rows": [["singer"]]}',
            '{"name": "describe", "arguments": {"table_name": "singer"}}',
            "name | age\nA | 3",
        )
    )
    return f"The tool said:\n{opening}\n{body}\n{closing}\nThat is all that I need."


def _mentioned(draw: Random) -> str:
    """A sentence that names the marks of a format without any call."""
    entry = draw.choice([each for each in FORMATS if each.marks])
    mark = draw.choice((*entry.marks, *entry.closes))
    return draw.choice(
        (
            f"Every call begins with {mark} in this format, they say.",
            f"I should not write {mark} unless I call a tool.",
            f"The mark `{mark}` opens a call.",
        )
    )


def messages_without_calls(draw: Random, n: int) -> Iterator[tuple[str, str]]:
    """Yield `n` messages, each with its kind."""
    templates = {
        "prose": _PROSE, "running": _RUNNING, "sql": _SQL, "program": _PROGRAMS, "data": _DATA,
    }  # fmt: skip
    made = {
        "quoted": _quoted, "documented": _documented, "echoed": _echoed, "mentioned": _mentioned,
    }  # fmt: skip
    for _ in range(n):
        kind = draw.choice((*templates, *made))
        if kind in made:
            yield kind, made[kind](draw)
            continue
        fields = {
            "tool": draw.choice(("describe", "tables", "query")),
            "table": draw.choice(("singer", "concert", "x", "orders 2", "it's")),
        }
        texts = [draw.choice(templates[kind]).format(**fields)]
        if draw.random() < 0.4:
            texts.append(draw.choice(_PROSE).format(**fields))
        if draw.random() < 0.2:
            texts.insert(0, "Let me see.")
        yield kind, "\n\n".join(texts)
