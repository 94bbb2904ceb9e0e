"""SQL in a canonical form, to detect near-duplicate tasks and to keep splits disjoint.

The form ignores the case of names, quotes and aliases. It also ignores the order of conditions
joined by AND or OR, of values in a list after IN, and of the two sides of `=`. All other
differences are kept, including literals (`sqlgym.tasks.splits` removes literals).
"""

from __future__ import annotations

import functools
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, shared_tree
from sqlgym.synthesis.schema import identifier

_LARGEST: Final = 300
"""Maximum size, in nodes, of an operand of `=` that may change sides. In a chain of `a = b = c`,
the text of each operand would repeat all operands before it.
"""


@functools.lru_cache(maxsize=8192)
def canonical_sql(sql: str) -> str:
    """Return one query in canonical form.

    Raises:
        ValueError: The text is not one query that can be parsed.

    >>> canonical_sql('SELECT T1."Name" FROM Singer AS T1 WHERE T1.Age>3 AND T1.x IN (2, 1)')
    'SELECT t1.name FROM singer AS t1 WHERE t1.age > 3 AND t1.x IN (1, 2)'
    >>> canonical_sql("select S.name from singer S where s.x in (1,2) and s.age > 3")
    'SELECT t1.name FROM singer AS t1 WHERE t1.age > 3 AND t1.x IN (1, 2)'
    """
    try:
        tree = careful(lambda: shared_tree(sql).copy())
        _rename(tree)
        return careful(lambda: _sorted(tree).sql("sqlite"))
    except SqlglotError as error:
        raise ValueError(f"This is not one query that can be parsed: {sql!r}") from error


def _rename(tree: exp.Expr) -> None:
    """Write names in lower case, unquoted where possible, and number the aliases of tables."""
    aliases: dict[str, str] = {}
    for table in tree.find_all(exp.Table, bfs=False):
        if table.alias:
            aliases.setdefault(table.alias.lower(), f"t{len(aliases) + 1}")
    for name in tree.find_all(exp.Identifier):
        text = name.this.lower()
        is_qualifier = name.arg_key == "table" or isinstance(name.parent, exp.TableAlias)
        name.set("this", aliases.get(text, text) if is_qualifier else text)
        name.set("quoted", identifier(name.this) != name.this)


def _sorted(tree: exp.Expr) -> exp.Expr:
    """Sort operands by their text wherever their order has no effect."""
    for listed in list(tree.find_all(exp.In)):
        if listed.expressions:
            listed.set("expressions", sorted(listed.expressions, key=_text))
    sizes = _sizes(tree)
    for equal in reversed(list(tree.find_all(exp.EQ))):  # inner nodes first
        left, right = equal.left, equal.right
        if max(sizes[id(left)], sizes[id(right)]) <= _LARGEST and _place(right) < _place(left):
            equal.set("this", right)
            equal.set("expression", left)
    for kind in (exp.And, exp.Or):
        for node in list(tree.find_all(kind)):
            if not isinstance(node.parent, kind):
                _sort_terms(node, kind)
    return tree


def _sizes(tree: exp.Expr) -> dict[int, int]:
    """Return the number of nodes in and below each node, by its `id`."""
    sizes: dict[int, int] = {}
    for node in reversed(list(tree.bfs())):  # children before their parents
        sizes[id(node)] = 1 + sum(sizes[id(child)] for child in node.iter_expressions())
    return sizes


def _sort_terms(node: exp.Expr, kind: type[exp.And] | type[exp.Or]) -> None:
    terms = sorted((term.copy() for term in _terms(node, kind)), key=_text)
    result = terms[0]
    for term in terms[1:]:
        result = kind(this=result, expression=term)
    node.set("this", result.args["this"])
    node.set("expression", result.args["expression"])


def _terms(node: exp.Expr, kind: type[exp.And] | type[exp.Or]) -> list[exp.Expr]:
    waiting, terms = [node], []
    while waiting:  # no recursion, because a chain of a thousand terms is a thousand levels deep
        each = waiting.pop()
        inner = each.unnest()
        if isinstance(inner, kind):
            waiting += [inner.expression, inner.this]
        else:
            terms.append(each)
    return terms


def _place(node: exp.Expr) -> tuple[bool, str]:
    """Return the rank of an operand of `=`: columns before literals and queries."""
    return isinstance(node, exp.Literal | exp.Query | exp.Neg), _text(node)


def _text(node: exp.Expr) -> str:
    return node.sql("sqlite")
