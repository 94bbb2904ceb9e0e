"""The words in the names of tables and columns.

* `emp_hire_dt` becomes "employee", "hire" and "date".
* `noOfCars` becomes "number", "of" and "cars".
* `x7` cannot be read as a word.
* `ordlins` is spelled like a word, but it counts as an abbreviation if the schema has many
  abbreviations.

A name is split at underscores, spaces and changes of case, and common abbreviations are expanded. A
question may use a name if all its parts are readable (`is_readable`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


def word_set(text: str) -> frozenset[str]:
    """Return the words of a string.

    >>> sorted(word_set("name title name"))
    ['name', 'title']
    """
    return frozenset(text.split())


def word_table(text: str) -> dict[str, str]:
    """Parse `key: value` pairs that are separated by semicolons."""
    pairs = (entry.split(":") for entry in text.split(";") if entry.strip())
    return {key.strip(): " ".join(value.split()) for key, value in pairs}


ABBREVIATIONS = word_table("""
    acct: account; addr: address; amt: amount; appt: appointment; avg: average; bal: balance;
    bday: birthday; bldg: building; cat: category; categ: category; cnt: count; ctry: country;
    cust: customer; dept: department; dpt: department; desc: description; descr: description;
    dest: destination; dob: date of birth; dt: date; dur: duration; email: email address;
    emp: employee; fname: first name; freq: frequency; hrs: hours; id: ID; ids: IDs;
    img: image; info: information; instr: instructor; inv: invoice; lang: language;
    lat: latitude; lname: last name; lng: longitude; loc: location; lon: longitude; lvl: level;
    max: maximum; mgr: manager; min: minimum; msg: message; nbr: number; nm: name; nr: number;
    num: number; org: organization; pct: percentage; phone: phone number; pop: population;
    prod: product; proj: project; prof: professor; qty: quantity; sal: salary; seq: sequence;
    src: source; std: standard; stu: student; stud: student; tel: telephone number;
    temp: temperature; tot: total; trans: transaction; txn: transaction; univ: university;
    usr: user; vol: volume; cd: code; hdr: header; ln: line; grp: group; typ: type; stat: status;
    hosp: hospital; mth: month; pmt: payment; ord: order; itm: item; dtl: detail;
    ingr: ingredient; ref: reference; req: request; veh: vehicle; insp: inspection; seg: segment;
    supp: supplier; exp: expiry; elev: elevation; sname: surname; abv: ABV; ibu: IBU;
    wt: weight; ht: height; yr: year; zip: ZIP code; zipcode: ZIP code; ssn: SSN; tv: TV;
    gdp: GDP; gnp: GNP; gpa: GPA; isbn: ISBN; iata: IATA; icao: ICAO; iso: ISO; sku: SKU;
    url: URL; ip: IP; mpg: MPG; usa: USA; uk: UK; eu: EU; ceo: CEO; vat: VAT; bmi: BMI; gps: GPS;
    cpu: CPU; ram: RAM; dna: DNA; nasa: NASA; imdb: IMDb; fifa: FIFA; vip: VIP; pdf: PDF; sms: SMS;
    fax: fax number; telephone: telephone number; no: number; mat: material; tkt: ticket;
    evt: event; txt: text; prop: property; uuid: ID; guid: ID
""")
"""Abbreviations with a single meaning in names, and their meanings."""
_LONG_FORMS = word_set(" ".join(ABBREVIATIONS.values()).lower())

UNITS = word_table("""
    km: km; cm: cm; mm: mm; mi: miles; miles: miles; ft: feet; feet: feet; inches: inches;
    meters: meters; metres: meters; kg: kg; lb: pounds; lbs: pounds; grams: grams; mg: mg;
    tonnes: tonnes; usd: US dollars; dollars: dollars; eur: euros; euros: euros;
    gbp: pounds sterling; chf: Swiss francs; cents: cents; ms: milliseconds; sec: seconds;
    secs: seconds; seconds: seconds; mins: minutes; minutes: minutes; hrs: hours; hours: hours;
    days: days; weeks: weeks; months: months; years: years; kwh: kWh; kw: kW; mw: MW; gw: GW;
    ha: hectares; sqm: square meters; sqkm: square kilometers; sqft: square feet; kmh: km/h;
    kph: km/h; mph: mph; mb: MB; gb: GB; tb: TB; kcal: kcal; hz: Hz; mhz: MHz; ghz: GHz; hp: hp;
    celsius: degrees Celsius; fahrenheit: degrees Fahrenheit; kelvin: kelvins; liters: liters;
    litres: liters; ml: ml; km2: square kilometers; m2: square meters; m3: cubic meters;
    pence: pence; sek: Swedish kronor; nok: Norwegian kroner; dkk: Danish kroner; jpy: yen;
    cl: centiliters; dl: deciliters; psi: psi; ppm: ppm; hpa: hPa;
    millions: million; million: million; thousands: thousand;
    au: astronomical units; pct: percent; percent: percent; percentage: percent; deg: degrees
""")
"""Last parts of names that are units, in the words of a question."""
_LENGTHS = """
    length height width depth distance altitude elevation diameter radius aperture range ascent span
    highest lowest
"""
SHORT_UNITS: dict[str, tuple[str, frozenset[str]]] = {
    "m": ("meters", word_set(_LENGTHS)),
    "nm": ("nautical miles", word_set("distance length range")),
    "min": ("minutes", word_set("duration time length delay runtime")),
    "s": ("seconds", word_set("duration time delay interval exposure")),
    "h": ("hours", word_set("duration time")),
    "g": ("grams", word_set("weight mass")),
    "t": ("tonnes", word_set("weight mass load cargo")),
    "c": ("degrees Celsius", word_set("temperature point melting boiling")),
    "l": ("liters", word_set("volume capacity")),
}
"""Units of one or two letters, and the preceding words that identify them as units."""
PERSONS = word_set("""
    person employee customer student singer teacher member author actor artist player patient doctor
    nurse user client professor instructor manager driver pilot passenger reviewer director writer
    researcher scientist musician coach guest tenant owner candidate voter friend worker engineer
    astronaut athlete climber swimmer journalist editor borrower lawyer judge officer advisor
    composer performer conductor designer seller buyer dealer farmer trainer referee poet painter
    visitor people host chef pupil subscriber laureate supervisor
""")
PLACE_COLUMNS = word_set("""
    country city town state county province region continent district nationality hometown
""")
FREE_TEXTS = word_set("""
    description comment comments detail details note notes summary review abstract content address
    password URL bio remark remarks message body text
""")
PREPOSITIONS = word_set("""
    in on at of to for by with from and or per since until as into onto via against
""")

WORDS = word_set("""
    able absence abundance academic accepted accession accident account accuracy ace acid
    acquired acre act action active activity actor actress acts actual ad add address adjusted
    administration admission admitted adult advisor age aged agency ages agreement aid aim air
    aircraft airline airport airy album alcohol all allergy allocation allowed ally also alt
    altitude aluminum amount amp and animal announced annual answer ant any apartment aperture
    apex aphelion app appeal appliance applicant application appointment approved arc arch
    architect are area arm arms army arrest arrival art article artist ascent ask aspect
    assessment asset assignment
    assist assistant association asteroid astronomer athlete atom atomic attempt attendance
    attendee attorney attribute auction audience aunt author authority auto available average
    award away axis axle baby back bacteria bad bag baggage bags bait bake balance balcony ball
    ballot ban band bank bankruptcy bar barcode bark barn bars base baseball basement basketball
    bass bat bath bathroom battery bay be bead beak beam bean bear beat bed bedroom beds bee
    beef beer beginning begun behavior behaviour bell belt bend benefit best bet bias bicycle
    bid bids big bike bill bin bio bird birth birthday bit bite bits block blood blue boar boat
    body boil bolt bomb bond bone bonus book booking boom boot border born borrower boss both
    bottle bow bowl box boy branch breed brew bridge broker brother budget bug bugs building
    built bulb bulk bull bunk bus business busy butter butterfly buy buyer by byte cab cabin
    cafe cage cake calendar calf calibration call calm camp campaign campus can cancelled
    candidate cane canyon capacity capital captain caption car carbon card care cargo carousel
    carrier cars cart cartoon case cash cask cast cat category caterer cats cattle cause cave
    cell center centre certificate certified chain chairman chairperson champion change channel
    chapter character charge check checked cheese chef chemical chief children chip choice chord
    church circuit citation citizen city claim clan class classification clay clearance clef
    client climate climber clinic closed club clue coach coal coalition coaster coat cod code
    coin cold collection collector college color colour column come comedy comet comment
    commission committee common company competition complaint completed component composer
    computer concert condition conductor conference confirmed congress connection constellation
    constituency consultant contact container content continent contract contributor control
    conversion cook cool cope copper copy copyright cord core cork corn corporate correct cost
    cosy council counter country county course court cover coverage cow cows crater created
    credit crew crime criteria critic crop cub cube cuisine culture cup cure curl currency
    current curriculum customer cut cyan cycle cylinder dairy dam damage damp dark data database
    date daughter dawn day days dead deadline deaf deal dean dear death debit debt debut
    decision deck decor deed deep deer default defect definition degree delay delivery demand
    demo density deny department departure deposit depot depth derived description desert design
    designer desk destination detail developer device diagnoses diagnosis dial diameter dice did
    die diet difference difficulty digital dim dimension dip directed direction director dirt
    disability disc discharge discipline discount discovered discoverer disease dish disk
    dispatch display distance distribution district dive dividend division do dock doctor
    document does dog dogs doll domain dome domestic donation done donor door dorm dosage dose
    down draft drama draw driver drop drought drug drum drummer dry dual duck due duel dug
    duration dusk dust duty dye dynasty each ear earn earnings ears earthquake ease east easy
    eat eccentricity echo economy edge edit edition editor education eel effective efficiency
    egg eggs elected election electric electricity element elevation elevator eligible elk else
    emergency emission emoji empire employee employer employment empty emu end engine engineer
    enquiry enrolled enrollment enrolment entrance entry environment envy epic epicenter episode
    equipment era error essay established estimate evaluation eve even event ever ewe exam
    examination exchange executive exercise exhibition exit expected expense experience expired
    expiry expo export exposure extension external eye eyes face facility fact factory faculty
    fade fail failed failure fair fall fame family fan fans far fare farm fast fate father
    favorite fax fear feat feature fed federal fee feed feedback feel fees feet fell felt female
    fertilizer festival few fiction field figure file fill film final finance financial find
    fine finish fire firm first fish fit five flag flap flat flaw flight floor flow flower fly
    foal foam fog fold folder folk follower font food foot football forecast foreign forest form
    format formula fort forum foul found founded founder four fourth fox fraction framework free
    frequency fret friend frog from fuel full fun function fund fur furniture future galaxy
    gallery game gap garage garden gas gate gave gear gem gems gender gene general generation
    generator genre genus gift gig girl give given glacier glad glow glue gnu goal goat god goes
    gold golf good got government gown grade gradient graduate graduation grammar grant grape
    graph gravity grew grid grip grit gross group growth guarantee guardian guest guide guitar
    gulf gun guns guy gym habitat had hair half hall halt hand handball hang harbor harbour hard
    hardware harm harvest has hashtag hat haul have hawk hay head headline headquarters health
    heap hearing heat heating heel height heir held helium help hen her herb herd here heritage
    hero hid hide high hike hill hire his historic history hit hits hive hog hold holder hole
    holiday home hometown honey honor hood hook hop hope hops horizontal horn horror horse
    horsepower hospital host hot hotel hour hourly household housing hub hue hull humidity hung
    hunt hurricane hurt husband hut hydrogen ice ices icon icy idea identifier idle illness
    image impact import inch incident inclination income increase index indicator individual
    industry influence ingredient initial ink inks inmate inn inns insect inspection inspector
    installation installed institute institution instruction instructor instrument insurance
    insurer integer intensity interest internal international interval interview introduced
    inventory investment investor invoice ion iron is island issue item its ivy jail jam jar jaw
    jazz jet job jobs jockey join joke journal journey judge judgement jump jungle juror jury
    just keel keep keg kegs kept key keyboard keys kick kickoff kid kids kin kind king kingdom
    kiss kit kitchen kite knee knew knit knot lab label labor laboratory labour labs lace lack
    lady lag laid lake lamb lamp land landlord landmark lane language lap laps last late latin
    latitude launch laureate law lawn laws lawyer lay layer lazy lead leader leadership leaf
    league lean leap learning lease leave lecture led ledger left leg legs lender length lent
    less lesson let letter level liability library licence license lid life lifespan lift light
    lily lime limit line link lion lip list lit literature lithium live livestock load loading
    loan local location lock locked log logo logs long longitude look loop lord lose loser loss
    lost lot lots loud love low lowest luck luggage lunar lung lure lyric mac machine mad made
    magazine magnitude mail main maintenance major majority make maker male mall malt mammal man
    manager manufactured manufacturer many map maps margin marina marital mark market marketing
    married mascot mash mask mass mast master mat match mate material math maximum mayor meadow
    meal mean measure measurement meat medal medical medicine medium meet meeting meld melody
    melt member membership men menu merchant mesh message met metal meter method middle mild
    mile mileage milk mill mind mine mineral minimum minister ministry mint minute miss mission
    mix mob mobile mode model modified module mold mole mon monarch monitor month monthly mood
    moon more mortgage moss most moth mother motive motor motorcycle mountain move movement
    movie mud mule museum music musician must mute name nap nation national nationality nature
    navy near neck need negative neighbor nest net nets network neutral new news newspaper next nice
    nick
    nickname night nitrogen node nomination none noon north nose note noun nova novel novelist
    null numb number nurse nutrition oak oar oath oats object observation occupancy occupation
    occurred odd ode off offence offer office officer official oil oils oily old one only open
    opened opening opera operating operation operator opinion opt option oral orb orbit orchard
    orchestra order ore organisation organization origin original other our out outcome outflow
    output oven over overall overtime own owner ownership ox oxygen pace pack package packaged
    packet pad pads page paid pain painter painting pair pale pallet palm pan panel pants paper
    par paragraph parameter parcel parent park parking parliament part partner party pass
    passenger passport password past path patient pattern pawn pay payable payment payroll pays
    peak pear peer pen penalty pending peninsula pens pension people per percent percentage
    performance perihelion period permanent permission permit person personal pet pets pharmacy
    phase phone physical physician piano pick picture pie pieces pier pig pile pill pilot pin
    pine pink pins pint pipe pipeline pit pitch pitcher pixel place plaintiff plan planet
    planned plant planting plate platform platinum play player playlist plea pledge plot plug
    plum plus ply pod podcast podcaster poem poet point pole police policy political poll pond
    pool poor pop pope population pork port portfolio pose position positive post postal posted
    pot potential pots poultry pour power practice precipitation preferred premiere premium
    prepared prescription presentation president pressure previous price primary principal
    printed priority prison prisoner private prize probability procedure process processed
    produced producer product production profession professor profile profit program programme
    progress project promotion property proposal protein protocol provider province pub public
    publication published publisher pubs pull pulp pump pup pupil purchase pure purple purpose
    push put quality quantity quarter quay question queue quiz quota quotation race rack radio
    radius raft rail rain rainfall ram ramp range rank ranking rare rat rate rating ratio raw
    ray rays reaction reactor read reading real rear reason rebound receipt received recipe
    recipient record recorded recruitment red reduced redundancy reed reef reel referee
    referendum referral refinery refund region regional register registration regular relation
    release released religion remaining remark rent rental repair repeat replaced reply report
    reported reptile request required research reservation reserved resident resolution resource
    response responsible rest restaurant result retail retailer retired return revenue review
    revision reward rice rich ride rift right rim ring rink riot ripe rise risk rite river road
    roast robbery rock rocket rod rode role roll roof room root rope rose rotation round route
    row rows royal rub rug rule run runs runway rush rust sack sad saddle safe sage said sail
    sailor salary sale salesman salesperson salt same sample sand sang sank satellite save
    savings saw scan schedule scheduled school science scientist score screen screening script
    sculptor sculpture sea seal seam season seat seating second secondary secretary section
    sector security seed seek seen segment self sell semester seminar senate senator send
    seniority sensor sent sentence sequence serial series service session set sets settlement
    severity sew sex share shed sheep shelf shift ship shipment shipped shipping shoe shop short
    shot show shown shut shy sick side sign signature silk sill silo silver sin singer single
    sink sister site size ski skill skin skip sky slab slid slip slot slow slug sly snow
    snowfall soap sock soft software soil solar sold soldier sole solo some son song soon sort
    soul soundtrack soup sour source sow sown spa spacecraft span speaker special specialty
    species specimen speed spice spin spokesman sponsor sport spot spouse spy squad square
    stadium staff stage stain standard standing star start starting state statement station
    statistic status stay stellar stem step stew stir stock stop storage store strategy stream
    street strength string structure student studio style subject submission submitted
    subscriber subscription substation subtotal success such sugar suit suite sum summary sun
    sung supervisor supplier supply support sure surface surgeon surgery surname survey
    suspended swam swan swap swim swum symbol symphony symptom system table tabs tag tags tail
    take tale talk tall tan tank tap tape taps tare target tariff task taste tax taxes taxi tea
    teacher teal team tear technical technician technology teen telephone telescope tell
    temperature template tempo temporary ten tenant tension tent term terminal territory test
    text than that theater theatre theft theme then therapy they thickness thin third this
    thread threshold tick ticket tide tidy tie tier ties tile till timber time timeline timezone
    tin tint tiny tip tips tire title toe toll tomb ton tone tonnage tons took tool top topic
    tore torn tornado torque toss total tour tournament town toy toys tracking tractor trade
    trading traffic trail trailer trainer training transaction transfer transformer transport
    trap travel tray treatment treaty tree trial trigger trim trip triple truck true trust
    tsunami tub tube tug tuition tune turbine turf turn turnout turnover tutor twin two type
    tyre ugly undergraduate unit update updated upload upon upvote uranium urban urgent urn
    usage use used user username utility vacancy vacation vaccine valid valley valuation value
    van vane vans variance variety vary vase vat vault vehicle vein vendor vent venue verdict
    verified verse version vertical very vessel vest vet veteran via vice victim video view
    viewer village vine vineyard violation violin visa visibility visit visitor vitamin voice
    void volcano volt voltage volume volunteer vote votes voucher voyage wage wait waiting walk
    wall want ward warden ware warehouse warm warning warranty was wash waste water watt wattage
    wave wavy wax way ways weak wear weather web website wedding weed week weekday weekend
    weekly weight welfare well went were west wet what when where whey who wholesaler why wide
    width wife wifi wild will win wind window wine wing winner wins winter wire wise wish wit
    with withdrawal witness woke wolf woman women won wood wool word wore work worker workshop
    worm wrap writer written wry yak yard yarn year yearly yes yet yield yoga yogurt young youth
    zero zinc zip zone zoo zoos
""")
"""Common words in names: those of up to four letters, and longer ones."""
_PIECES = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+|[A-Z]|\d+")
_CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxz]{5}|^[bcdfghjklmnpqrstvwxz]{4}")
_STARTS = word_set("""
    bl br ch cl cr dr dw fl fr gh gl gn gr kn kr ph pl pr ps rh sc sh sk sl sm sn sp sq st sv
    sw th tr ts tw wh wr
""")
_ENDS = word_set("""
    ch sh th ng nk nd nt st ct ft lt pt xt rd rt rk rm rn rl rp rs rb rf rc rg ld lk lm lp lf
    ls lb ll ss ff zz tt dd gg nn rr ck ks ps ts ns ms ds gs bs cs ws mp mn mb sk sp sm gn gh
    ph wn wl wk wd ht bt ys vs mt gm
""")
"""Pairs of consonants with which English words start and end."""
_VOWELS = frozenset("aeiouy")


@lru_cache(maxsize=8192)
def parts_of(name: str) -> tuple[str, ...]:
    """Return the parts of a name as written.

    >>> parts_of("Song_release_year"), parts_of("trackLengthKM"), parts_of("sourceairport")
    (('Song', 'release', 'year'), ('track', 'Length', 'KM'), ('source', 'airport'))
    """
    parts: list[str] = []
    for piece in re.split(r"[\W_]+", name):
        if piece.lower() in UNITS or piece.lower() in ABBREVIATIONS:
            parts.append(piece)
            continue
        for part in _PIECES.findall(piece):
            parts += _split(part) if len(part) < 30 else [part]
    return tuple(parts)


def _split(part: str) -> list[str]:
    """Split two words that are written as one: `sourceairport`, `songid`."""
    lower = part.lower()
    if _is_listed(lower):
        return [part]
    for end in range(len(part) - 2, 2, -1):
        head, tail = lower[:end], lower[end:]
        if tail in _TAILS and (head in WORDS if len(tail) == 2 or end > 3 else head in _HEADS):
            return [part[:end], part[end:]]
    return [part]


_TAILS = word_set("""
    id no name date time year type number price amount rate count total status level airport
""")
_HEADS = word_set("end due pay job tax net sub")


@lru_cache(maxsize=8192)
def words_of(name: str) -> tuple[str, ...]:
    """Return the parts of a name in lower case, with expanded abbreviations.

    >>> words_of("emp_hire_dt"), words_of("no_of_cars"), words_of("TV_Channel")
    (('employee', 'hire', 'date'), ('number', 'of', 'cars'), ('TV', 'channel'))
    """
    words: list[str] = []
    acronyms = _acronyms(name)
    for part in parts_of(name):
        shown = part if part in acronyms else part.lower()
        for word in ABBREVIATIONS.get(part.lower(), shown).split(" "):
            if words[-1:] not in ([word], [f"{word}s"]):
                words.append(word)
    text = " ".join(words)
    for double in ("number of number", "phone number of number"):
        text = text.replace(double, "number")
    return tuple(text.split(" ")) if text else ()


def is_readable(name: str, only_listed: bool = False) -> bool:
    """Return whether all parts of a name are words or abbreviations of words.

    Args:
        only_listed: Accept only listed words; see `abbreviates`.

    >>> [is_readable(name) for name in ("song_name", "x7", "zzqp", "größte", "MPG", "ordlins")]
    [True, False, False, False, True, True]
    >>> is_readable("ordlins", only_listed=True)
    False
    """
    acronyms = _acronyms(name)
    parts = [part.lower() for part in parts_of(name) if part not in acronyms]
    parts = parts[:-1] if unit_of(parts) else parts
    if not parts or not name.isascii() or len(parts) > 6:
        return False
    return all(
        _is_listed(part) or _is_compound(part) or (not only_listed and _is_spelled(part))
        for part in parts
    )


def abbreviates(names: Iterable[str]) -> bool:
    """Return whether many parts of these names are abbreviations or not spelled like English
    words.
    """
    parts = [
        part.lower()
        for name in names
        for part in parts_of(name)
        if part.isalpha() and part not in _acronyms(name)
    ]
    units = UNITS.keys() | SHORT_UNITS.keys()
    odd = [p for p in parts if p not in units and not _is_listed(p) and not _is_spelled(p)]
    clipped = [part for part in parts if part in ABBREVIATIONS and part not in _USUAL]
    return 20 * len(odd) + 5 * len(clipped) > len(parts)


_USUAL = word_set("id ids no email phone zip avg max min tv gdp gpa isbn url usa info num")


def unit_of(parts: Sequence[str]) -> str:
    """Return the unit that the last part of a name abbreviates, or "" if it is not a unit.

    >>> unit_of(["length", "m"]), unit_of(["price", "EUR"]), unit_of(["team", "m"])
    ('meters', 'euros', '')
    """
    *words, last = [part.lower() for part in parts] or [""]
    short, after = SHORT_UNITS.get(last, ("", frozenset()))
    unit = UNITS.get(last) or (short if not after.isdisjoint(words) else "")
    return unit if words and "per" not in words else ""


@lru_cache(maxsize=8192)
def _acronyms(name: str) -> frozenset[str]:
    """Return the unknown all-capital parts of a name that also has lower-case letters: `LPA
    Code`.
    """
    if name.isupper():
        return frozenset()
    return frozenset(
        part
        for part in parts_of(name)
        if 2 <= len(part) <= 5
        and part.isupper()
        and part.lower() not in UNITS
        and not _is_listed(part.lower())
    )


def _is_listed(part: str) -> bool:
    """Return whether a part is an abbreviation, or a listed word with or without an ending."""
    if part in ABBREVIATIONS or part in WORDS or part in _LONG_FORMS or part in PREPOSITIONS:
        return True
    for ending, rest in (
        ("s", ""),
        ("es", ""),
        ("ies", "y"),
        ("d", ""),
        ("ed", ""),
        ("ing", ""),
        ("ing", "e"),
        ("er", ""),
        ("r", ""),
    ):
        stem = part.removesuffix(ending) + rest
        if part.endswith(ending) and len(stem) > 2 and stem in WORDS:
            return ending not in ("d", "r") or stem.endswith("e")
    return False


def _is_compound(part: str) -> bool:
    """Return whether a part consists of two listed words, such as "woodland"."""
    ends = range(4, min(len(part), 24) - 3)
    return any(part[:end] in WORDS and part[end:] in WORDS for end in ends)


@lru_cache(maxsize=8192)
def _is_spelled(part: str) -> bool:
    """Return whether an unknown part is spelled like an English word."""
    vowels = sum(letter in _VOWELS for letter in part)
    return (
        5 <= len(part) <= 20
        and part.isalpha()
        and vowels > 0
        and not _CLUSTER.search(part)
        and (not _VOWELS.isdisjoint(part[:2]) or part[:2] in _STARTS)
        and (not _VOWELS.isdisjoint(part[-2:]) or part[-2:] in _ENDS)
    )
