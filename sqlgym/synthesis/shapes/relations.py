"""References in words and in joins.

A plain link: concerts "of" a stadium, stadiums that "have" concerts. One with a role: employees
"whose manager is" an employee, employees that "are the manager of" employees. Over a junction
table: singers "linked to" a concert "through" it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlgym.synthesis import drafting
from sqlgym.synthesis.conditions.conditions import Condition, condition
from sqlgym.synthesis.drafting import Draft, Named
from sqlgym.synthesis.language import english
from sqlgym.synthesis.reading.world import Bridge, Entity, Link


@dataclass(frozen=True)
class Chain:
    """References followed upwards, from a child to its parent and on.

    Attributes:
        links: One to three of them.
    """

    links: tuple[Link, ...]

    @property
    def start(self) -> Entity:
        """The first child."""
        return self.links[0].child

    @property
    def end(self) -> Entity:
        """The last parent."""
        return self.links[-1].parent

    @property
    def alias(self) -> str:
        """The alias of the last parent; the first child's is T1."""
        return f"T{len(self.links) + 1}"

    @property
    def source(self) -> str:
        """The text behind FROM."""
        text = f"{self.start.sql} AS T1"
        for place, link in enumerate(self.links, 1):
            alias = f"T{place + 1}"
            text += f" JOIN {link.parent.sql} AS {alias} ON {link.on(f'T{place}', alias)}"
        return text

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables joined."""
        return (self.start.name, *(link.parent.name for link in self.links))

    def roles(self) -> list[str]:
        """The role of each parent to its child."""
        return [link.parent.noun.one if link.is_plain else link.role for link in self.links]

    def after(self, draft: Draft, condition: Condition) -> str:
        """Behind the first child's noun: the last parent fulfils a condition.

        "whose stadium has a capacity above 500", "whose department has a location in Toronto".
        """
        *others, last = self.roles()
        if not others:
            many = self.end.noun.many
            of = f"of {many} {condition.after(draft)}" if self.links[0].is_plain else None
            return draft.say(
                f"whose {condition.of(draft, last)}", f"whose {condition.of(draft, last)}", of
            )
        if len(others) == 1 and draft.chance(0.5):
            return f"whose {condition.of(draft, f'{english.possessive(others[0])} {last}')}"
        if len(others) == 2:
            return f"whose {others[0]} has {english.a(others[1])} whose {condition.of(draft, last)}"
        return f"whose {others[0]} has {english.a(last)} {condition.after_one(draft)}"

    def after_named(self, draft: Draft, row: Named) -> str:
        """Behind the first child's noun: the last parent is a named row."""
        *others, last = self.roles()
        if not others:
            of = f"of {row.said}" if self.links[0].is_plain else None
            return draft.say(f"whose {last} {row.clause}", of)
        if len(others) == 1:
            return f"whose {english.possessive(others[0])} {last} {row.clause}"
        return f"whose {others[0]} has {english.a(others[1])} whose {last} {row.clause}"


def chain(draft: Draft, length: int, fits: Callable[[Chain], Any] = bool) -> Chain:
    """References that lead on from each other, through no table twice."""
    first = draft.pick(link for link in draft.world.links if _is_said(link))
    links = [first]
    while len(links) < length:
        seen = {first.child.name, *(link.parent.name for link in links)}
        links.append(
            draft.pick(
                link
                for link in draft.world.links
                if link.child.name == links[-1].parent.name
                and link.parent.name not in seen
                and _is_said(link)
            )
        )
    chain = Chain(tuple(links))
    draft.unless(not fits(chain))
    return chain


def end_of(draft: Draft, chain: Chain) -> tuple[tuple[str, ...], str, tuple[Condition, ...]]:
    """A test of the last parent: SQL, the wording behind the first child, the conditions."""
    if draft.chance(0.4) and chain.end.label is not None and chain.end.rows > 3:
        row = drafting.row_of(draft, chain.end)
        return row.where(chain.alias), chain.after_named(draft, row), ()
    condition_ = condition(draft, chain.end, chain.alias)
    return (condition_.sql,), chain.after(draft, condition_), (condition_,)


def haves(link: Link, things: str) -> str:
    """Behind the parent's noun, as a verb in the plural: "have more than two concerts"."""
    return f"have {things}" if link.is_plain else f"are the {link.role} of {things}"


def having(link: Link, things: str) -> str:
    """Behind the parent's noun: "with more than two concerts"."""
    return f"with {things}" if link.is_plain else f"that are the {link.role} of {things}"


def has(link: Link, things: str) -> str:
    """Behind the parent's noun, as a verb in the singular."""
    return f"has {things}" if link.is_plain else f"is the {link.role} of {things}"


def child_link(draft: Draft, fits: Callable[[Link], Any] = bool) -> Link:
    """A link that can be said from its parent's side."""
    return draft.pick(
        link for link in draft.world.links if _is_said(link) and not link.is_single and fits(link)
    )


def bridge(draft: Draft, fits: Callable[[Bridge], Any] = bool) -> Bridge:
    """A junction table between two tables."""
    return draft.pick(bridge for bridge in draft.world.bridges if fits(bridge))


def bridged(bridge: Bridge) -> str:
    """Both tables of a bridge behind FROM: T1 on its left, T3 on its right."""
    junction = bridge.left.child.sql
    return (
        f"{bridge.left.parent.sql} AS T1 JOIN {junction} AS T2 ON {bridge.left.on('T2', 'T1')}"
        f" JOIN {bridge.right.parent.sql} AS T3 ON {bridge.right.on('T2', 'T3')}"
    )


def through(bridge: Bridge) -> str:
    """By what the two sides of a bridge are linked."""
    junction = bridge.left.child
    if junction.noun.is_readable:
        return f"through {junction.noun.many}"
    shown = junction.name.replace('"', '""')
    return f'through the table "{shown}"'


def tables_of(bridge: Bridge) -> tuple[str, ...]:
    """The three tables of a bridge."""
    return bridge.left.parent.name, bridge.left.child.name, bridge.right.parent.name


def _is_said(link: Link) -> bool:
    """Whether the role of a link can be read."""
    return not link.role.startswith('"') and link.parent.noun.is_readable | link.is_plain
