"""Places in an order: the first few of each group, the place of one row, the best of its own group.

Where rows tie there are several ways to count places, and nothing is asked: `row_number()` and
`dense_rank()` must give what `rank()` gives, and of each parent there is one child at the top.
"""

from __future__ import annotations

from dataclasses import replace

from sqlgym.synthesis import drafting
from sqlgym.synthesis.conditions import conditions, forms
from sqlgym.synthesis.drafting import Candidate, Draft, Query, columns, named, names, shape, the
from sqlgym.synthesis.schema import Entity, Field, Role
from sqlgym.synthesis.shapes import asking, groups, joins, orders, per_parent
from sqlgym.synthesis.shapes.filters import readings


def _by(field: Field, is_most: bool, alias: str = "") -> str:
    return f"{field.value_sql(alias)} {'DESC' if is_most else 'ASC'}"


def _otherwise(sql: str, *functions: str) -> tuple[str, ...]:
    """The same with other ways to count places."""
    return tuple(sql.replace("rank() OVER", f"{function}() OVER") for function in functions)


def _has_place(entity: Entity) -> bool:
    """Whether it has a column that is called as places are called here."""
    return any(field.name.lower() == "place" for field in entity.fields)


@shape("top-of-each-group", large=False)
def top_of_each_group(draft: Draft) -> Candidate:
    """The first one, two or three rows of each value of a column."""
    entity = draft.entity(
        lambda e: e.label and e.having(Role.CATEGORY, Role.YEAR) and e.having(*_ORDERED)
    )
    group = groups.grouping(draft, entity)
    field = _ordering(draft, entity, group)
    number, is_most = draft.pick((1, 1, 2, 2, 3)), draft.chance(0.65)
    draft.unless(_has_place(entity))
    draft.unless(group.distinct * number > groups.MOST_GROUPS or entity.rows < 3 * group.distinct)
    label = named(draft, entity)
    draft.unless({group.name, field.name} & {f.name for f in label})
    where, after, filters = conditions.perhaps(
        draft, 0.3, entity, besides=(group.name, field.name), kinds=conditions.SHORT
    )
    place = f"rank() OVER (PARTITION BY {group.sql()} ORDER BY {_by(field, is_most)}) AS place"
    shown = columns((group, *label))
    query = Query((*shown, place), entity.sql, where)
    sql = f"SELECT {', '.join(shown)} FROM ({query.sql()}) WHERE place <= {number}"
    if number == 1:
        sql = sql.replace("<= 1", "= 1")
        row = asking.the_most(draft, entity, field, is_most, after.strip())
        what, which = f"{the(label)} of {row}", asking.with_most(draft, entity, field, is_most)
    else:
        rows = f"the {orders.first_few(entity, field, is_most, number, after)}"
        what, which = f"the {names(label)} of {rows}", ""
    one = group.noun.one
    question = asking.ask(
        draft,
        None,
        f"I need, for each {one}, the {one} and {what}.",
        f"For each {one}, give the {one} and {what}.",
        f"For every {one}, show the {one} and {what}.",
        f"Within each {one}, which {which}? Give the {one} and {the(label)}."
        if which and not after
        else None,
        f"For each {one}, what {'is' if which and len(label) == 1 else 'are'} {what}? Show the"
        f" {one} first.",
        f"Find {what}, separately for each {one}. Give the {one} first.",
        f"Separately for each {one}, list {what}. Show the {one} first.",
    )
    weaker = [sql.replace(query.sql(), other) for other in query.weaker()]
    best = [sql.replace(f"PARTITION BY {group.sql()} ", "")]
    others = [sql.replace(query.sql(), other) for other in readings(query, *filters)]
    return Candidate(
        question,
        sql,
        (entity.name,),
        (*weaker, *best),
        (*_otherwise(sql, "row_number"), *others),
        several=True,
    )


_ORDERED = (Role.QUANTITY, Role.YEAR, Role.DATE)


def _ordering(draft: Draft, entity: Entity, *besides: Field) -> Field:
    return draft.pick(
        f
        for f in entity.having(*_ORDERED)
        if f.is_full and f.distinct > 2 and f.noun.is_readable and f not in besides
    )


@shape("top-of-each-parent", large=False)
def top_of_each_parent(draft: Draft) -> Candidate:
    """The child with the most or the latest of something of each parent, or a fact of it."""
    link = joins.draw_child_link(
        draft, lambda link: link.is_plain and link.parent.label and link.child.having(*_ORDERED)
    )
    parent, child = link.parent, link.child
    draft.unless(parent.rows - link.childless > groups.MOST_GROUPS)
    field, is_most = _ordering(draft, child), draft.chance(0.65)
    mine = named(draft, parent)
    if child.label and child.label.is_said:
        shown = child.label.fields
    else:
        shown = (draft.pick(f for f in asking.outputs(child) if f is not field),)
    draft.unless(field in shown)
    best = f"{'max' if is_most else 'min'}({field.value_sql('T3')})"
    inner = f"SELECT {best} FROM {child.sql} AS T3 WHERE {link.on('T3', 'T1')}"
    select = (*columns(mine, "T1"), *columns(shown, "T2"))
    test = f"{field.value_sql('T2')} = ({inner})"
    query = Query(select, per_parent.source(link), (test,))
    row = asking.the_most(draft, child, field, is_most)
    if field.noun.one in ("date", f"{child.noun.one} date"):
        row = f"the {asking.ends(field, True)[0 if is_most else 1]} {child.noun.one}"
    one = parent.noun.one
    its = row.replace("the ", f"{parent.its} ", 1)
    without = f" Leave out {parent.noun.many} without {child.noun.many}." if link.childless else ""
    question = asking.ask(
        draft,
        f"{the(mine)} of each {one}, and {the(shown)} of {its}",
        f"For each {one}, give {the(mine)} of the {one} and {the(shown)} of {its}.{without}",
        f"For every {one}, show {the(mine)} of the {one}, then {the(shown)} of {its}.{without}",
        f"For each {one}, what {'is' if len(shown) == 1 else 'are'} {the(shown)} of {its}? Give"
        f" {the(mine)} of the {one} first.{without}",
        is_many=None,
        then=without,
    )
    worst = query.sql().replace(best, f"{'min' if is_most else 'max'}({field.value_sql('T3')})")
    once = replace(query, group=per_parent.group(link))  # one row less wherever two tie
    return Candidate(
        question,
        query.sql(),
        (parent.name, child.name),
        (worst,),
        (once.sql(),),
        several=True,
    )


@shape("place-of-row", large=False)
def place_of_row(draft: Draft) -> Candidate:
    """The place of a named row in an order, among all rows or those of its group."""
    entity = draft.entity(lambda e: e.label and e.label.is_said and e.rows > 5)
    field, is_most = _ordering(draft, entity), draft.chance(0.7)
    row = drafting.row_of(draft, entity)
    draft.unless(field in row.fields or _has_place(entity))
    many, partition, group_said = entity.noun.many, "", ""
    if draft.chance(0.3):
        group = groups.grouping(draft, entity)
        draft.unless(group in (field, *row.fields))
        partition = f"PARTITION BY {group.sql()} "
        group_said = f" {forms.placed_by(entity, group) or 'with'} the same {group.noun.one}"
    inner = Query(
        (*columns(row.fields), f"rank() OVER ({partition}ORDER BY {_by(field, is_most)}) AS place"),
        entity.sql,
    ).sql()
    query = Query(("place",), f"({inner})", row.where())
    by = f"by {field.noun.one}, {asking.ends(field, is_most)[0]} first"
    among = f"the {many}{group_said}" if partition else f"all {many}"
    question = asking.ask(
        draft,
        f"the rank of {row.said} among {among}, sorted {by}",
        f"What rank does {row.said} have among {among} when they are sorted {by}?",
        f"What rank does {row.said} have when all {many} are sorted {by}?" * (not partition),
        f"Rank all {many} {by}. What is the rank of {row.said}?" * (not partition),
        f"Where does {row.said} rank among {among}, sorted {by}?",
        is_many=False,
    )
    contrasts = ["SELECT 1"]
    contrasts += [query.sql().replace(partition, "")] if partition else []
    return Candidate(
        question,
        query.sql(),
        (entity.name,),
        tuple(contrasts),
        _otherwise(query.sql(), "dense_rank", "row_number"),
        one_row=True,
    )


@shape("above-own-group", large=False)
def above_own_group(draft: Draft) -> Candidate:
    """Rows above or below the average of the rows that share a value with them."""
    entity = draft.entity(lambda e: e.label and e.having(Role.CATEGORY) and e.having(Role.QUANTITY))
    group = groups.grouping(draft, entity)
    draft.unless(group.role is Role.YEAR)
    field = draft.pick(
        f
        for f in entity.having(Role.QUANTITY)
        if f.is_full and f.distinct > 2 and not f.noun.one.startswith(("average ", "mean "))
    )
    sign, word = draft.pick(((">", "above"), ("<", "below")))
    inner = (
        f"SELECT avg({field.value_sql('T2')}) FROM {entity.sql} AS T2"
        f" WHERE {group.sql('T2')} = {group.sql('T1')}"
    )
    own, after, filters = conditions.perhaps(
        draft, 0.3, entity, "T1", besides=(group.name, field.name), kinds=conditions.SHORT
    )
    shown = () if draft.chance(0.3) else asking.shown(draft, entity, field.name)
    tests = (*own, f"{field.value_sql('T1')} {sign} ({inner})")
    query = Query(columns(shown, "T1") or ("count(*)",), f"{entity.sql} AS T1", tests)
    many, noun = entity.noun.many, field.noun
    of = forms.placed_by(entity, group) or "of"
    whole = f"the average of all {many} {of} the same {group.noun.one}"
    clause = draft.say(f"whose {noun.one} is {word} {whole}", f"with {noun.a} {word} {whole}")
    question = asking.list_or_count(
        draft,
        entity,
        shown,
        f"{after.strip()} {clause}".strip(),
        f"have {noun.a} {word} {whole}" if not after else None,
    )
    everyone = query.sql().replace(f" WHERE {group.sql('T2')} = {group.sql('T1')}", "")
    return Candidate(
        question,
        query.sql(),
        (entity.name,),
        (*query.weaker(), everyone),
        readings(query, *filters),
    )
