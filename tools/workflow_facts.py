"""Invented valleys, their facts, and questions that join two to four of them.

Each valley is a closed world: towns on rivers, rivers that end in lakes, institutions that somebody
founded, people who were born somewhere, learnt from someone and work somewhere. All names are made
up, so that nothing can be known by heart. A question follows a chain of facts; the passages shown
with it are those of the entities on the chain, and of others, shuffled.
"""

import random
from typing import NamedTuple

Fact = tuple[str, str, str]
"""Subject, relation, object."""


def words(text: str, separator: str | None = None) -> list[str]:
    """The words of a text."""
    return text.split(separator)


SYLLABLES = "Ard Bren Cal Dor Eld Fen Gar Hol Ister Jar Kel Lor Mar Nor Oster Pel Quar Ros Sel Tor"
ENDINGS = "by ford wick stead mere holm thorpe ham combe ness gate hurst"
RIVERS = words(
    "Alva Birn Cress Danel Esker Fallow Glim Hesper Ilm Jura Kestle Lune Merrow Nidd Orrin Pell "
    "Quill Rhane Saline Tamsel Ulver Varn Wend Yarrel Zill Brae Corve Dunnet Elver Frome Gannet "
    "Hollin Inver Keld Lathe Morn Nevis Orchy"
)
LAKES = words(
    "Amber Bittern Cinder Dove Ember Falcon Granite Heron Iris Juniper Kite Larch Mallow Nettle "
    "Osprey Plover Quartz Raven Slate Thistle Umber Vesper Willow Yew Zephyr Aspen"
)
FIRST = words(
    "Adela Bertil Cosima Dario Edda Falk Gesine Halvar Ilse Joris Kaspar Liv Mirko Nele Odo Petra "
    "Ragna Silvan Thea Ulf Viola Wanda Yorick Zora"
)
LAST = words(
    "Abendal Brackmoor Castigar Drosten Elmhard Fennick Gaspard Hollander Ivering Jannick Kolvert "
    "Lindgard Morvane Nystad Ostrander Pellworm Quist Rademar Solberg Tavistel Ulmer Vandrel "
    "Westerling Yorvik Zander"
)
EMBLEMS = words("Anchor Heron Lantern Acorn Compass Swan Beacon Thistle Falcon Rowan Salmon Star")
INSTITUTIONS = words(
    "Clock Museum,Library,Glass Works,Observatory,Botanical Garden,Music School,Press,"
    "Puppet Theatre,Rope Works,Weather Station",
    ",",
)
TRADES = words("clockmaker,botanist,printer,composer,surveyor,potter,bookbinder,cartographer", ",")


class Valley(NamedTuple):
    """One closed world: its facts in order, and a passage about each entity."""

    name: str
    facts: tuple[Fact, ...]
    passages: dict[str, str]

    def get(self, subject: str, relation: str) -> str:
        """The object of a fact."""
        return next(o for s, r, o in self.facts if (s, r) == (subject, relation))


class Question(NamedTuple):
    """A question, its gold with other names, the facts it joins, and wrong answers."""

    text: str
    gold: str
    aliases: tuple[str, ...]
    chain: tuple[Fact, ...]
    distractors: tuple[str, ...]


def make_valleys(rng: random.Random, count: int) -> list[Valley]:
    """Valleys that share no town, river, lake or institution."""
    heads = SYLLABLES.split()
    towns = [head + end for head in heads for end in ENDINGS.split()]
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    lakes = [f"Lake {name}" for name in LAKES]
    places = [f"the {emblem} {what}" for emblem in EMBLEMS for what in INSTITUTIONS]
    for names in (towns, people, lakes, places):
        rng.shuffle(names)
    rivers = [f"the {name}" for name in RIVERS]
    rng.shuffle(rivers)
    return [
        _valley(
            rng,
            towns[5 * n : 5 * n + 5],
            people[9 * n : 9 * n + 9],
            rivers[3 * n : 3 * n + 3],
            lakes[2 * n : 2 * n + 2],
            places[5 * n : 5 * n + 5],
        )
        for n in range(count)
    ]


def _valley(
    rng: random.Random,
    towns: list[str],
    people: list[str],
    rivers: list[str],
    lakes: list[str],
    places: list[str],
) -> Valley:
    facts: list[Fact] = []
    ends = [lakes[0], lakes[1], rng.choice(lakes)]
    facts += [(river, "flows into", lake) for river, lake in zip(rivers, ends, strict=True)]
    banks = [*rivers, *rng.choices(rivers, k=2)]
    mayors = rng.sample(people, 5)
    for town, river, mayor in zip(towns, banks, mayors, strict=True):
        facts += [(town, "lies on", river), (town, "has as mayor", mayor)]
    seats = rng.sample(towns, 5)
    years = rng.sample(range(1804, 1990), 5)
    founders = rng.sample(people, 5)
    for place, seat, year, founder in zip(places, seats, years, founders, strict=True):
        facts += [
            (place, "stands in", seat), (place, "was opened in", str(year)),
            (place, "was founded by", founder),
        ]  # fmt: skip
    for index, person in enumerate(people):
        facts += [
            (person, "was born in", rng.choice(towns)),
            (person, "works at", rng.choice(places)),
            (person, "learnt from", rng.choice([other for other in people if other != person])),
            (person, "is by trade a", TRADES[index % len(TRADES)]),
        ]  # fmt: skip
    entities = dict.fromkeys(fact[0] for fact in facts)
    about = {name: [fact for fact in facts if fact[0] == name] for name in entities}
    passages = {name: _passage(rng, name, own) for name, own in about.items()}
    return Valley(f"valley-of-{towns[0].lower()}", tuple(facts), passages)


def _passage(rng: random.Random, name: str, facts: list[Fact]) -> str:
    """A few sentences that tell the facts about one entity."""
    told = {relation: value for _, relation, value in facts}
    title = name[0].upper() + name[1:]
    if "flows into" in told:
        return rng.choice((
            f"{title} is a river that flows into {told['flows into']}.",
            f"{title} rises in the hills and ends in {told['flows into']}.",
        ))  # fmt: skip
    if "lies on" in told:
        return rng.choice((
            f"{title} is a town on {told['lies on']}. Its mayor is {told['has as mayor']}.",
            f"The town of {title} lies on the banks of {told['lies on']}. {told['has as mayor']} "
            "is its mayor.",
        ))  # fmt: skip
    if "stands in" in told:
        return rng.choice((
            f"{title} stands in {told['stands in']}. It was founded by {told['was founded by']} "
            f"and opened in {told['was opened in']}.",
            f"{title} was opened in {told['was opened in']}. Its founder was "
            f"{told['was founded by']}, and its building is in {told['stands in']}.",
        ))  # fmt: skip
    trade = told["is by trade a"]
    return rng.choice((
        f"{title} is a {trade} who was born in {told['was born in']}, learnt the trade from "
        f"{told['learnt from']} and works at {told['works at']}.",
        f"{title}, a {trade} born in {told['was born in']}, works at {told['works at']}. "
        f"The teacher of {title} was {told['learnt from']}.",
    ))  # fmt: skip


PEOPLE, PLACE = "person", "place"
SHAPES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (PEOPLE, ("was born in", "lies on"), (
        "On which river does the town lie in which {x} was born?",
        "{x} was born in a town on a river. Which river is it?")),
    (PEOPLE, ("was born in", "has as mayor"), (
        "Who is the mayor of the town in which {x} was born?",
        "Which person is mayor of the birthplace of {x}?")),
    (PEOPLE, ("works at", "was opened in"), (
        "In which year was the institution opened at which {x} works?",
        "When did the place where {x} works open? Give the year.")),
    (PEOPLE, ("works at", "was founded by"), (
        "Who founded the institution at which {x} works?",
        "What is the name of the founder of the place where {x} works?")),
    (PEOPLE, ("learnt from", "was born in"), (
        "In which town was the teacher of {x} born?",
        "What is the birthplace of the person from whom {x} learnt?")),
    (PLACE, ("was founded by", "was born in"), (
        "In which town was the founder of {x} born?",
        "What is the birthplace of the person who founded {x}?")),
    (PLACE, ("stands in", "has as mayor"), (
        "Who is the mayor of the town in which {x} stands?",
        "{X} stands in a town. Who is the mayor of that town?")),
    (PEOPLE, ("was born in", "lies on", "flows into"), (
        "Into which lake does the river flow on which the birthplace of {x} lies?",
        "The town in which {x} was born lies on a river. In which lake does this river end?")),
    (PEOPLE, ("learnt from", "was born in", "has as mayor"), (
        "Who is the mayor of the town in which the teacher of {x} was born?",
        "{x} learnt from someone. Who is mayor of the town in which that teacher was born?")),
    (PEOPLE, ("learnt from", "works at", "was opened in"), (
        "In which year was the institution opened at which the teacher of {x} works?",
        "The teacher of {x} works at an institution. In which year was it opened?")),
    (PLACE, ("was founded by", "learnt from", "works at"), (
        "At which institution does the teacher of the founder of {x} work?",
        "Where does the person work from whom the founder of {x} learnt the trade?")),
    (PLACE, ("was founded by", "was born in", "lies on"), (
        "On which river lies the town in which the founder of {x} was born?",
        "Which river runs past the birthplace of the founder of {x}?")),
    (PLACE, ("stands in", "lies on", "flows into"), (
        "Into which lake does the river flow that passes the town where {x} stands?",
        "{X} stands in a town on a river. In which lake does that river end?")),
    (PEOPLE, ("works at", "was founded by", "was born in", "lies on"), (
        "On which river lies the town in which the founder of the place where {x} works was born?",
        "{x} works at an institution. Which river runs past the town in which its founder was "
        "born?")),
    (PLACE, ("was founded by", "was born in", "lies on", "flows into"), (
        "Into which lake flows the river on which the birthplace of the founder of {x} lies?",
        "The founder of {x} was born in a town on a river. In which lake does that river end?")),
)  # fmt: skip


def make_question(rng: random.Random, valley: Valley, shape: int) -> Question:
    """A question of one shape about a random entity; the last shape compares two institutions."""
    if shape == len(SHAPES):
        return _comparison(rng, valley)
    sort, relations, wordings = SHAPES[shape]
    starts = _subjects(valley, "was born in" if sort == PEOPLE else "stands in")
    while True:
        start = subject = rng.choice(starts)
        chain: list[Fact] = []
        for relation in relations:
            found = valley.get(subject, relation)
            chain.append((subject, relation, found))
            subject = found
        seen = [start, *(fact[2] for fact in chain)]
        if len(set(seen)) == len(seen):  # "the mayor of the birthplace of X" must not be X
            break
    text = rng.choice(wordings).format(x=start, X=start[0].upper() + start[1:])
    others = sorted({o for _, r, o in valley.facts if r == relations[-1]} - {subject, start})
    return Question(
        text,
        subject,
        _aliases(subject),
        tuple(chain),
        tuple(rng.sample(others, min(3, len(others)))),
    )


def _comparison(rng: random.Random, valley: Valley) -> Question:
    one, two = rng.sample(_subjects(valley, "stands in"), 2)
    facts = tuple(
        (place, "was opened in", valley.get(place, "was opened in")) for place in (one, two)
    )
    first, second = (one, two) if int(facts[0][2]) < int(facts[1][2]) else (two, one)
    later = rng.random() < 0.5
    gold, other = (second, first) if later else (first, second)
    word = "later" if later else "earlier"
    text = rng.choice((
        f"Which was opened {word}, {one} or {two}?",
        f"Of {one} and {two}, which opened {word}?",
    ))  # fmt: skip
    return Question(text, gold, _aliases(gold), facts, (other,))


def _subjects(valley: Valley, relation: str) -> list[str]:
    return [s for s, r, _ in valley.facts if r == relation]


def _aliases(name: str) -> tuple[str, ...]:
    """Other right names of an entity."""
    if name.startswith("the ") and " " not in name[4:]:
        return (f"{name} river", f"River {name[4:]}")
    return (name.removeprefix("Lake "),) if name.startswith("Lake ") else ()


def passages_of(
    rng: random.Random, valley: Valley, question: Question, count: int = 8
) -> list[str]:
    """The passages of the chain's subjects and of others, shuffled."""
    needed = list(dict.fromkeys(subject for subject, _, _ in question.chain))
    others = [name for name in valley.passages if name not in needed]
    shown = needed + rng.sample(others, count - len(needed))
    rng.shuffle(shown)
    return [valley.passages[name] for name in shown]
