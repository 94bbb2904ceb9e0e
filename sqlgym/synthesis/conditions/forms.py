"""The ways to say a condition, by kind:

    with    singers with an age above 30        which singers have an age above 30?
    be      singers older than 30               which singers are older than 30?
    that    singers that are active             which singers are active?
    can     birds that can fly                  which birds can fly?
    owns    planets that have rings             which planets have rings?
    did     singers born in 1984                which singers were born in 1984?
    whose   singers whose age is above 30       (behind a noun only)
    which   singers for which an age is known   (behind a noun only)

Each function gives all forms that a column allows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlgym.synthesis import english, lexicon, spoken_values
from sqlgym.synthesis.drafting import Draft
from sqlgym.synthesis.flags import flag_of
from sqlgym.synthesis.parts import is_readable, words_of
from sqlgym.synthesis.schema import Entity, Field, Role

_MORE = {
    ">": ("above {}", "greater than {}", "over {}", "higher than {}"),
    "<": ("below {}", "less than {}", "under {}", "lower than {}"),
    ">=": ("of at least {}", "of {} or more"),
    "<=": ("of at most {}", "of {} or less"),
}
_IS = {
    ">": ("is above {}", "is greater than {}", "is more than {}", "exceeds {}"),
    "<": ("is below {}", "is less than {}", "is under {}"),
    ">=": ("is at least {}", "is {} or more"),
    "<=": ("is at most {}", "is {} or less"),
}
_COUNT = {
    ">": ("more than {}", "over {}"),
    "<": ("fewer than {}",),
    ">=": ("at least {}", "{} or more"),
    "<=": ("at most {}", "{} or fewer", "no more than {}"),
}
_YEAR = {">": "after {}", "<": "before {}", ">=": "{} or later", "<=": "{} or earlier"}


_WITH_ARTICLE = re.compile(
    r"(?:United |Netherlands|Philippines|Bahamas|Maldives|.* (?:Republic|Islands|States|Union)$"
    r"|USA$|UK$|UAE$|Gambia|Sudan$)"
)
"""Places that are said with an article behind a preposition."""


class Form(NamedTuple):
    """One way to say a condition: its kind, and the text behind the kind's first word."""

    kind: str
    text: str

    def after(self) -> str:
        """Behind a noun."""
        if self.kind == "be":
            return self.text
        if self.kind == "that":
            return f"that are {self.text}"
        if self.kind == "did":
            for start in ("were ", "was "):
                if self.text.startswith(start):
                    return self.text.removeprefix(start)
            return f"that {self.text}"
        if self.kind == "owns":
            return f"that have {self.text}"
        if self.kind == "can":
            return f"that {self.text}"
        return f"for which {self.text}" if self.kind == "which" else f"{self.kind} {self.text}"

    def of(self, owner: str) -> str:
        """Said of one thing: "the stadium" gives "the stadium has a capacity above 500"."""
        if self.kind == "whose":
            return f"{english.possessive(owner)} {self.text}"
        if self.kind == "did":
            return f"{owner} {self.text.replace('were ', 'was ', 1)}"
        if self.kind == "can":
            return f"{owner} {self.text}"
        if self.kind == "that":
            return f"{owner} {english.of_one(self.after()).removeprefix('that ')}"
        starts = {"with": "has", "be": "is", "that": "is", "owns": "has"}
        return f"{owner} {starts[self.kind]} {self.text}" if self.kind in starts else ""

    def verb(self) -> str:
        """As the verb of a noun in the plural; "" where it cannot be one."""
        starts = {"with": "have ", "be": "are ", "that": "are ", "owns": "have "}
        starts |= {"did": "", "can": ""}
        return starts[self.kind] + self.text if self.kind in starts else ""


def comparison(draft: Draft, field: Field, sign: str, limit: float) -> tuple[Form, ...]:
    """More or less than a number."""
    if field.role is Role.YEAR:
        return _year_comparison(field, sign, str(int(limit)))
    text = spoken_values.amount(field, limit, draft.commas)
    noun = field.noun
    if noun.counts and not noun.unit:
        things = count_phrase(draft.pick(_COUNT[sign]), text, noun.counts)
        whose = f"{noun.one} {draft.pick(_IS[sign]).format(text)}"
        return Form("with", things), Form("whose", whose)
    forms = [
        Form("whose", f"{noun.one} {draft.pick(_IS[sign]).format(text)}"),
        Form("with", f"{noun.a} {draft.pick(_MORE[sign]).format(text)}"),
    ]
    words = lexicon.SUPERLATIVES.get(noun.graded)
    if words and sign in "<>" and len(noun.one) > 1:
        comparative = words[2] if sign == ">" else words[3]
        if noun.graded not in ("price", "cost"):
            forms.append(Form("be", f"{comparative} than {text}"))
    return tuple(forms)


def count_phrase(words: str, number: str, things: str) -> str:
    """A number of things: "more than one kid", "five or more kids"."""
    if not number.isdigit() or int(number) > 12:
        return f"{words.format(number)} {things}"
    one = number == "1" and not words.startswith("{}")
    text = words.format(english.number_word(int(number)))
    return f"{text} {english.singular(things) if one else things}"


def _year_comparison(field: Field, sign: str, year: str) -> tuple[Form, ...]:
    noun, plain = field.noun.one, _YEAR[sign].format(year)
    when = f"in {plain}" if "=" in sign else plain
    forms = [Form("whose", f"{noun} is {plain}"), *event_forms(field, when)]
    if noun == "year":
        forms.append(Form("be", f"from {plain}"))
    elif field.noun.is_readable and not field.noun.event:
        forms.append(Form("with", f"{field.noun.a} {'of ' if '=' in sign else ''}{plain}"))
    return tuple(forms)


def equal_number(draft: Draft, field: Field, value: float) -> tuple[Form, ...]:
    """Exactly a number."""
    noun = field.noun
    if field.role is Role.YEAR:
        year = str(int(value))
        forms = [Form("whose", f"{noun.one} is {year}"), *event_forms(field, f"in {year}")]
        if noun.one == "year":
            return (*forms, Form("be", f"from {year}"), Form("be", f"of the year {year}"))
        return (*forms, *[Form("with", f"{noun.a} of {year}")] * (not noun.event))
    text = spoken_values.amount(field, value, draft.commas)
    if noun.counts and not noun.unit and value == 0:
        return Form("with", f"no {noun.counts}"), Form("whose", f"{noun.one} is 0")
    if noun.counts and not noun.unit:
        exact = count_phrase("exactly {}", text, noun.counts)
        return Form("with", exact), Form("whose", f"{noun.one} is {text}")
    return Form("with", f"{noun.a} of {text}"), Form("whose", f"{noun.one} is {text}")


def between(draft: Draft, field: Field, low: float, high: float) -> tuple[Form, ...]:
    """Between two numbers, both included."""
    noun = field.noun
    if field.role is Role.YEAR:
        ends = f"{int(low)} and {int(high)}"
        forms = [Form("whose", f"{noun.one} is between {ends} (both included)")]
        forms += event_forms(field, f"between {ends} (both years included)")
        with_ = Form("with", f"{noun.a} between {ends} (both included)")
        return (*forms, *[with_] * (not noun.event))
    first, last = (
        spoken_values.digits(low, draft.commas),
        spoken_values.amount(field, high, draft.commas),
    )
    if noun.counts and not noun.unit:
        range_ = f"between {first} and {last} {noun.counts} (both included)"
        return Form("with", range_), Form(
            "whose", f"{noun.one} is between {first} and {last} (both included)"
        )
    range_ = draft.say(f"between {first} and {last} (both included)", f"from {first} to {last}")
    return Form("with", f"{noun.a} {range_}"), Form("whose", f"{noun.one} is {range_}")


def equal_text(entity: Entity, field: Field, value: str) -> tuple[Form, ...]:
    """Exactly a text."""
    shown = spoken_values.quoted_text(value)
    forms = [Form("whose", f"{field.noun.one} {field.noun.be} {shown}")]
    forms += _with(field, f"the {field.noun.one} {shown}")
    return (*forms, *_placed(entity, field, shown))


def other_than(entity: Entity, field: Field, value: str) -> tuple[Form, ...]:
    """Any text but this one."""
    shown, noun = spoken_values.quoted_text(value), field.noun
    return (
        Form("whose", f"{noun.one} {noun.be} not {shown}"),
        *_with(field, f"{noun.a} other than {shown}"),
        *_placed(entity, field, shown, "not "),
    )


def one_of(entity: Entity, field: Field, texts: Sequence[str]) -> tuple[Form, ...]:
    """One of several texts."""
    shown = english.join_words(spoken_values.quoted_texts(texts), "or")
    forms = [Form("whose", f"{field.noun.one} {field.noun.be} {shown}")]
    if len(texts) == 2:
        forms.append(Form("whose", f"{field.noun.one} {field.noun.be} either {shown}"))
    return (*forms, *_placed(entity, field, shown))


def first_letter(draft: Draft, field: Field, letter: str) -> tuple[Form, ...]:
    """A text that starts with a letter."""
    noun, verb = field.noun, draft.say("starts", "begins")
    return (
        Form("whose", f"{noun.one} {verb} with the letter {letter}"),
        Form("with", f"{noun.a} that {verb} with {letter}"),
    )


def word_inside(field: Field, word: str) -> tuple[Form, ...]:
    """A text that has a word in it."""
    noun = field.noun
    return (
        Form("whose", f'{noun.one} contains the word "{word}"'),
        Form("with", f'the word "{word}" in the {noun.one}'),
    )


def flag(field: Field, value: Any, is_yes: bool) -> tuple[Form, ...]:
    """Yes or no: "that are active", "that have no rings"; "marked as VIP" where nothing fits."""
    found = flag_of(field.name)
    if found is not None:
        return (Form(found.kind, found.yes if is_yes else found.no),)
    words = [word for word in words_of(field.name) if word not in ("flag", "indicator")]
    if not is_readable(field.name) or not words:
        return (Form("which", _equals(field, value)),)
    if len(words) > 1 and words[0] in ("is", "was", "are", "does", "has", "have"):
        words = words[1:]
    if len(words) > 2 and words[-1] == "".join(word[0] for word in words[:-1]).upper():
        words.pop()  # `pay_per_view_PPV` tells its name twice
    return (Form("be", f"{'' if is_yes else 'not '}marked as {' '.join(words)}"),)


def presence(field: Field, is_known: bool) -> tuple[Form, ...]:
    """Whether there is a value."""
    noun = field.noun
    if not noun.is_readable:
        shown = field.name.replace('"', '""')
        return (Form("which", f'column "{shown}" is {"not " if is_known else ""}empty'),)
    if noun.event and field.role is Role.DATE:
        known = "is recorded" if is_known else "is not recorded"
        return (Form("whose", f"{noun.one} {known}"),)
    if is_known:
        known = f"known {noun.one}" if noun.is_plural else f"a known {noun.one}"
        return Form("which", f"{noun.a} {noun.be} recorded"), Form("with", known)
    return Form("which", f"no {noun.one} is recorded"), Form("with", f"no recorded {noun.one}")


def event_forms(field: Field, when: str) -> list[Form]:
    """What happened then, if the column's name is of an event: "were hired in 2014"."""
    event = field.noun.event
    return [Form("did", f"{event} {when}".strip())] if event else []


def _equals(field: Field, value: Any) -> str:
    shown = field.name.replace('"', '""')
    return f'"{shown}" is {spoken_values.quoted_text(value) if isinstance(value, str) else value}'


def placed_by(entity: Entity, field: Field) -> str:
    """The word before a value of a column that places rows: "from" of people, "in" of others."""
    placed = _placed(entity, field, "X")
    return placed[0].text.partition(" ")[0] if placed else ""


def _placed(entity: Entity, field: Field, shown: str, negation: str = "") -> tuple[Form, ...]:
    """ "from France" of people, "in France" of places."""
    if field.noun.one not in lexicon.PLACE_COLUMNS or shown[:1] in "'\"":
        return ()
    if any(f.noun.one.endswith(f" {field.noun.one}") for f in entity.fields):
        return ()  # beside a birth country, "from France" may be either
    if _WITH_ARTICLE.match(shown):
        shown = f"the {shown}"
    if entity.is_person and field.noun.one != "hometown":
        return (Form("be", f"{negation}from {shown}"),)
    return (Form("be", f"{negation}in {shown}"),) if entity.is_place else ()


def _with(field: Field, text: str) -> tuple[Form, ...]:
    """ "with the status 'open'", which nobody says of places or persons: rows have no town."""
    words = set(field.noun.one.split(" "))
    is_placed = bool(words & lexicon.PLACE_COLUMNS) or field.noun.last in lexicon.PERSONS
    is_said = field.noun.is_readable and not is_placed
    return (Form("with", text),) if is_said else ()
