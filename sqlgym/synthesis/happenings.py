"""What dates and years are called, and what happened to a row then.

    closed_at      closing date          were closed (tickets), closed (shops)
    year_built     construction year     were built
    order_date     order date            were placed (orders)

A column of dates is mostly named by a participle. Nobody says "the date closed": the date has a
noun, and conditions have the verb, "closed in October". Whether rows did it or had it done to them
depends on the verb, and with some on whether the rows are persons, places or things.
"""

from __future__ import annotations

from sqlgym.synthesis import english, lexicon
from sqlgym.synthesis.lexicon import word_set

_NOMINAL_TEXT = """
    acquired acquisition | activated activation | added addition | admitted admission
    adopted adoption | aired broadcast | announced announcement | applied application
    appointed appointment | approved approval | archived archiving | arrived arrival
    assigned assignment | awarded award | began start | begun start | booked booking | born birth
    borrowed borrowing | bought purchase | broadcast broadcast | built construction
    cancelled cancellation | canceled cancellation | certified certification
    collected collection | commissioned commissioning | completed completion
    composed composition | confirmed confirmation | constructed construction
    created creation | deactivated deactivation | decommissioned decommissioning
    deceased death | decided decision | deleted deletion | delivered delivery | departed departure
    diagnosed diagnosis | died death | discharged discharge | discontinued discontinuation
    discovered discovery | dismissed dismissal | dispatched dispatch | donated donation
    due due | elected election | employed employment | ended end | enrolled enrolment
    established establishment | expired expiry | finished completion | founded founding
    fulfilled fulfilment | granted grant | graduated graduation | harvested harvest
    hired hire | inspected inspection
    installed installation | introduced introduction | invented invention | invoiced invoice
    issued issue | joined joining | launched launch | left leaving | lent lending | loaned loan
    logged logging | manufactured manufacturing | married marriage | moved move
    occurred occurrence | happened occurrence | opened opening | ordered order | paid payment
    performed performance | placed placement | planted planting | premiered premiere
    processed processing
    produced production | promoted promotion | published publication | purchased purchase
    received receipt | recorded recording | refunded refund | registered registration
    rejected rejection | released release | removed removal | renewed renewal
    repaired repair | replaced replacement | reported report | requested request
    reserved reservation | resigned resignation | resolved resolution | retired retirement
    returned return | reviewed review | sampled sampling | sent sending | serviced service
    settled settlement | shipped shipping | signed signing | sold sale | started start
    submitted submission | subscribed subscription | surveyed survey | suspended suspension
    terminated termination | tested test | transferred transfer | treated treatment
    uploaded upload | used use | vaccinated vaccination | verified verification
    visited visit | withdrawn withdrawal | written writing
    scheduled scheduled | planned planned | expected expected | estimated estimated
    required required | promised promised | preferred preferred | proposed proposed
    intended intended | agreed agreed
"""
_PAIRS = _NOMINAL_TEXT.replace("|", " ").split()
NOMINAL = dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True))
"""Of participles, what stands before "date" or "year"; of others it is their form in -ing."""
_AT_LENGTH = {
    "updated": "{} of the last update",
    "modified": "{} of the last change",
    "changed": "{} of the last change",
    "edited": "{} of the last change",
    "deceased": "{} of death",
    "died": "{} of death",
    "born": "{} of birth",
    "added": "{} of addition",
    "occurred": "{} of occurrence",
    "happened": "{} of occurrence",
}
_COMES = {
    "expires": "expiry",
    "starts": "start",
    "begins": "start",
    "ends": "end",
    "opens": "opening",
    "closes": "closing",
    "arrives": "arrival",
    "departs": "departure",
    "renews": "renewal",
}
"""Of what comes at a date: `license_expires` is the license expiry date."""
_NO_NOUN = word_set("made won lost given taken held spent shown seen kept found caught set met run")
"""Participles of which no noun is made: "date last seen"."""
_ADVERBS = word_set("last first originally initially")
_FILLERS = word_set("date on at in year time day of timestamp")

_SELF = word_set("""
    joined arrived departed died left occurred happened started began ended expired resigned
    graduated enrolled premiered debuted emigrated lapsed matured finished crashed sank landed
    docked sailed applied begun
""")
"""What rows do themselves."""
_OCCURRENCES = word_set("visit appointment call job ticket case incident inspection repair")
"""What people arrive at."""
_OF_PERSONS = word_set("registered subscribed retired returned moved visited married voted")
"""What persons do themselves, and what is done to things."""
_OF_PLACES = word_set("opened closed")
"""What places and shows do themselves, and what is done to things."""
_SHOWS = word_set("production show exhibition play film movie musical opera season festival shop")
_OF_THINGS = word_set("""
    created updated modified changed edited added logged opened closed deleted imported
    started ended finished begun began issued processed uploaded entered used shipped
""")
"""What nobody says of persons."""
_NEVER = word_set("""
    scheduled planned expected estimated required promised preferred proposed intended agreed
    deceased modified changed logged
""")
"""What has not happened at its date, or is not said of a row."""

_OWN_TEXT = """
    order were placed | purchase were made | booking were made | reservation were made |
    payment were made | invoice were issued | bill were issued | sale were made | loan were made |
    donation were made | transaction were made | transfer were made | delivery were made |
    review were written | comment were posted | post were posted | message were sent |
    complaint were made | claim were made | request were made | reading were taken |
    measurement were taken | observation were made | sample were taken | incident occurred |
    accident occurred | event took place | match took place | game took place | race took place |
    fixture took place | concert took place | performance took place | show took place |
    meeting took place | session took place | lesson took place | lecture took place |
    appointment took place | visit took place | consultation took place | treatment took place |
    inspection took place | exam took place | examination took place | test took place |
    election took place | auction took place | trip took place | ride took place |
    screening took place | training took place | workshop took place | surgery took place |
    operation took place | flight took place | tournament took place | hearing took place |
    interview took place | tour took place | screening took place | rental were made |
    repair were made | report were written | rating were given | vote were cast |
    application were made | enrolment were made | registration were made |
    shipment were shipped | refund were made | deposit were made | withdrawal were made |
    admission took place | stay took place | mark were given | grade were given |
    note were written |
    article were written | entry were made | alert were raised | prescription were issued |
    diagnosis were made | vaccination were given | assignment were made | contribution were made |
    call were made | bid were placed | trade were made | offer were made | sighting were made |
    experiment took place | lecture took place | journey took place | checkout were made |
    assessment took place | check took place | conference took place | festival took place
"""
_OWN = {
    row: verb for entry in _OWN_TEXT.split("|") for row, _, verb in [entry.strip().partition(" ")]
}
"""What rows did at their own date: orders at their order date."""


def name_of(words: tuple[str, ...], kind: str, table: tuple[str, ...] = ()) -> str:
    """What a date or year is called whose name has a participle or "since"; "" of others.

    Args:
        words: The words of the column's name, without those of its table.
        kind: "date" or "year".
        table: The words of the table's name; bookings are not booked, but have a booking date.

    >>> name_of(("closed", "at"), "date"), name_of(("last", "cleaned", "on"), "date")
    ('closing date', 'last cleaning date')
    >>> name_of(("contract", "until"), "date"), name_of(("year", "built"), "year")
    ('contract end date', 'construction year')
    """
    if words[-1:] in (("since",), ("until",), ("till",)) and len(words) > 1:
        known = {**NOMINAL, "member": "membership"}
        if "of" in words[1:-1]:  # out of order since
            return f"{'-'.join(words[:-1])} {'start' if words[-1] == 'since' else 'end'} {kind}"
        stem = [known.get(word, word) for word in words[:-1] if word not in _FILLERS]
        return " ".join([*stem, "start" if words[-1] == "since" else "end", kind])
    core = [word for word in words if word not in _FILLERS]
    if not core:
        return ""
    *before, word = core
    if word in _COMES and len(before) < 2:
        return " ".join([*before, _COMES[word], kind])
    if len(before) > 1 or not english.is_participle(word):
        is_point = words[-1] in ("at", "on") and len(words) > 2
        return f"{' '.join(core)} {kind}" if is_point else ""
    is_verb = word in NOMINAL or word.endswith("ed")
    if word in _NO_NOUN or not is_verb or (before and english.is_participle(before[0])):
        return f"{kind} {' '.join(core)}"
    is_alike = bool(table) and table[-1][:4] == word[:4] and word != "built"
    if not before and table and (is_alike or word in ("occurred", "happened")):
        return f"{table[-1]} {kind}"
    if not before and word in _AT_LENGTH:
        return _AT_LENGTH[word].format(kind)
    return " ".join([*before, _nominal(word), kind])


_SAID_TWICE = frozenset(
    [
        *((row, word) for row in ("loan", "rental", "checkout") for word in ("borrowed", "rented")),
        ("payment", "paid"),
        ("sale", "sold"),
        ("purchase", "bought"),
    ]
)
"""Rows of what is done to something, and the doing: payments are made, not paid."""


def _nominal(participle: str) -> str:
    if participle in NOMINAL:
        return NOMINAL[participle]
    if participle.endswith("ified"):
        return f"{participle.removesuffix('ied')}ication"
    if participle.endswith("ated") and len(participle) > 7:
        return f"{participle.removesuffix('ed')}ion"
    stem = participle.removesuffix("ed")
    return f"{stem[:-1]}ying" if stem.endswith("i") else f"{stem}ing"


def event_of(words: tuple[str, ...], table: tuple[str, ...]) -> str:
    """What the rows of a table did, or had done to them, at such a date; "" where nothing is known.

    Args:
        words: The words of the column's name, without those of its table.
        table: The words of the table's name, the last one in the singular.

    >>> event_of(("closed", "at"), ("ticket",)), event_of(("closed", "at"), ("branch",))
    ('were closed', 'closed')
    >>> event_of(("end", "date"), ("agent",)), event_of(("order", "date"), ("order",))
    ('left', 'were placed')
    """
    core = [word for word in words if word not in _FILLERS]
    row = table[-1] if table else ""
    if core == ["since"] and row in lexicon.PERSONS:
        return "" if row in lexicon.BUYERS else "joined"
    if not core or core == [row]:
        return _OWN.get(row, "")
    *before, word = core
    if len(before) > 1 or (before and before[0] not in _ADVERBS):
        return ""
    if row and row[:4] == word[:4] and word != "built":  # admissions are not admitted
        return "" if before else _OWN.get(row, "")
    if (row, word) in _SAID_TWICE:
        return _OWN[row]
    if word.startswith("join") and row.endswith(("ship", "ment", "tion", "link")):
        return ""  # it is somebody else who joined
    if word in _VERBS_OF:
        word = _VERBS_OF[word]
    elif not english.is_participle(word) and word not in _SELF:
        return ""
    return _verb(word, " ".join(before), row)


def _verb(word: str, adverb: str, row: str) -> str:
    is_person = row in lexicon.PERSONS
    if word in _NEVER:
        return ""
    last = f"{adverb} " if adverb else ""
    if is_person and word in ("started", "ended", "began", "begun"):
        return {"ended": "left"}.get(word, "started")
    if is_person and word in _OF_THINGS:
        return ""
    if word in ("arrived", "departed") and row in _OCCURRENCES:
        return ""  # somebody else did
    by_itself = (
        word in _SELF
        or (is_person and word in _OF_PERSONS)
        or (row in lexicon.PLACES | _SHOWS and word in _OF_PLACES)
    )
    return f"{last}{word}" if by_itself else f"were {last}{word}"


_VERBS_OF = {
    **dict.fromkeys(("hire", "hiring"), "hired"),
    **dict.fromkeys(("birth", "born"), "born"),
    **dict.fromkeys(("death", "deceased"), "died"),
    **dict.fromkeys(("opening", "open"), "opened"),
    **dict.fromkeys(("join", "joining"), "joined"),
    **dict.fromkeys(("ship", "shipping"), "shipped"),
    **dict.fromkeys(("publish", "publication"), "published"),
    "release": "released",
    "creation": "created",
    "closing": "closed",
    "construction": "built",
    "launch": "launched",
    "registration": "registered",
    "admission": "admitted",
    "discharge": "discharged",
    "discovery": "discovered",
    "delivery": "delivered",
    "start": "started",
    "end": "ended",
    "issue": "issued",
    "enrolment": "enrolled",
    "pickup": "picked up",
    "report": "reported",
    "installation": "installed",
    "retirement": "retired",
    "departure": "departed",
    "arrival": "arrived",
    "close": "closed",
    "purchase": "bought",
    "purchased": "bought",
    "leaving": "left",
    "completion": "completed",
    "founding": "founded",
}
"""Nouns of dates, and what happened then."""
