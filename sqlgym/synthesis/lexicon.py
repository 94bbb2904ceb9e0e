"""Words that names of tables and columns are made of, and what is known of each.

Only what changes a question is listed: abbreviations to write out, units to say, nouns that need
words of their own ("older than", "hired in 2014"), quantities that must not be added up.
"""

from __future__ import annotations

# Sets of words, written as text.
#
# A set of hundreds of words reads best as the words and nothing else.


def word_set(text: str) -> frozenset[str]:
    """The words of a text, each once.

    >>> sorted(word_set("name title name"))
    ['name', 'title']
    """
    return frozenset(text.split())


def _table(text: str) -> dict[str, str]:
    """`key: value` pairs, one each between semicolons."""
    pairs = (entry.split(":") for entry in text.replace("\n", " ").split(";") if entry.strip())
    return {key.strip(): value.strip() for key, value in pairs}


ABBREVIATIONS = _table("""
    sls: sales; slsrep: sales rep; slsman: salesman; slsprsn: salesperson;
    emp: employee; empl: employee; dept: department; dpt: department; dt: date;
    qty: quantity; qnty: quantity; amt: amount; nbr: number; num: number; nr: number;
    addr: address; descr: description; desc: description; cust: customer; prod: product;
    cat: category; categ: category; mgr: manager; org: organisation; dob: date of birth;
    tel: telephone number; pct: percentage; perc: percentage; avg: average; tot: total;
    inv: invoice; acct: account; acc: account; txn: transaction; trans: transaction;
    tran: transaction; yr: year; wk: week; lat: latitude; lng: longitude; lon: longitude;
    temp: temperature; img: image; msg: message; usr: user; loc: location; src: source;
    dst: destination; dest: destination; seq: sequence; std: standard; univ: university;
    ht: height; wt: weight; wgt: weight; hgt: height; lang: language; curr: currency;
    bal: balance; cd: code; nm: name; nme: name; typ: type; sts: status; stat: status;
    ctry: country; cntry: country; cty: city; natl: national; nat: nationality;
    dur: duration; freq: frequency; vol: volume; pop: population; pos: position;
    fname: first name; lname: last name; mname: middle name; firstname: first name;
    lastname: last name; surname: surname; stu: student; stud: student; prof: professor;
    instr: instructor; crs: course; sem: semester; sect: section; bldg: building; flr: floor;
    rm: room; veh: vehicle; mfr: manufacturer; mfg: manufacturing; supp: supplier; vend: vendor;
    purch: purchase; ord: order; shp: shipping; pymt: payment; pmt: payment; sal: salary;
    comm: commission; mo: month; hosp: hospital; doc: document; phys: physician;
    appt: appointment; proc: procedure; diag: diagnosis; sched: schedule;
    arr: arrival; flt: flight; apt: airport; pax: passenger;
    terr: territory; grp: group; lvl: level; ver: version; config: configuration;
    spec: specification; specs: specifications; ext: extension; max: maximum; min: minimum;
    maxi: maximum; mini: minimum; bday: birthday; mpg: MPG; zip: ZIP code; zipcode: ZIP code;
    postcode: postal code; phone: phone number; telephone: telephone number; fax: fax number;
    email: e-mail address; mail: e-mail address; url: URL; isbn: ISBN; sku: SKU; vat: VAT;
    gdp: GDP; gnp: GNP; gpa: GPA; tv: TV; id: ID; ceo: CEO; ip: IP; usa: USA; uk: UK; eu: EU;
    cpu: CPU; ram: RAM; ssn: SSN; iban: IBAN; bmi: BMI; dna: DNA; hr: HR; pdf: PDF; csv: CSV;
    proj: project; prio: priority; hrs: hours; info: information; lifespan: life span;
    fte: FTE; birthdate: date of birth; birthday: birthday; checkin: check-in date;
    checkout: check-out date; login: login; username: user name; bedtype: bed type; rid: ID;
    displ: displacement; edispl: engine displacement; pat: patient; ins: insurance;
    dscr: description; un: UN; itm: item; ln: line; stk: stock; mvmt: movement; mvt: movement;
    fnm: first name; lnm: last name; hrly: hourly; rmrk: remark; rmk: remark; pref: preferred;
    flg: flag; pstl: postal; cntct: contact; eml: e-mail address; reord: reorder; dflt: default;
    cpm: CPM; ctr: CTR; hdr: header; cntr: counter; prc: price; shpmt: shipment;
    whse: warehouse; ts: timestamp; invc: invoice; ctgry: category;
    slsprsn: salesperson; rtng: rating; clb: club; mbr: member; mtch: match; ven: venue;
    sprt: sport; attnd: attendance; frst: first; frstnm: first name; shrt: short; sz: size;
    gps: GPS; sms: SMS; api: API; usb: USB; atm: ATM; iso: ISO; iata: IATA; icao: ICAO;
    vip: VIP; mri: MRI; icu: ICU; xp: XP; imdb: IMDb; fifa: FIFA; uefa: UEFA; nba: NBA; mot: MOT;
    acad: academic; orig: original;
    pts: points; yn: flag; surnm: surname; lstnm: last name; lic: licence; mgmt: management;
    tm: time; abv: alcohol content; ibu: bitterness; ebc: EBC; resp: response
""")
"""Parts of names and what they stand for; none that is usual for two things (`res`, `reg`)."""

GERMAN = _table("""
    kunde: customer; kunden: customer; mitarbeiter: employee; lieferant: supplier;
    lieferanten: supplier; artikel: article; produkt: product; produkte: product;
    bestellung: order; bestellungen: order; auftrag: order; auftraege: order; aufträge: order;
    rechnung: invoice; rechnungen: invoice; bestellposition: order item;
    bestellpositionen: order item; abteilung: department; abteilungen: department;
    filiale: branch; filialen: branch; kategorie: category; kategorien: category;
    zahlung: payment; zahlungen: payment; lieferung: delivery; lieferungen: delivery;
    patienten: patient; behandlung: treatment; behandlungen: treatment; adresse: address;
    adressen: address; vorname: first name; nachname: last name; bezeichnung: designation;
    beschreibung: description; strasse: street; straße: street; plz: postal code; ort: town;
    stadt: city; preis: price; menge: quantity; anzahl: quantity; betrag: amount;
    umsatz: turnover; gehalt: salary; gewicht: weight; größe: size; groesse: size;
    länge: length; laenge: length; breite: width; höhe: height; hoehe: height; farbe: colour;
    lagerbestand: stock level; datum: date; bestelldatum: order date; bestell: order;
    lieferdatum: delivery date; rechnungsdatum: invoice date; geburtsdatum: date of birth;
    geburtstag: date of birth; eintritt: entry date; eintrittsdatum: entry date;
    austritt: leaving date; aktiv: active; bemerkung: remark; geschlecht: gender;
    schlüssel: key
""")
"""German parts of names, of which no English name is made."""
ABBREVIATIONS |= GERMAN

COMPOUNDS = _table("""
    best before: best-before date; best before date: best-before date;
    reg date: registration date; reg dt: registration date; reg no: registration number;
    dep date: departure date; dep time: departure time; dep dt: departure date;
    dep name: department name; dep no: department number;
    date of birth: date of birth; birth date: date of birth; birth dt: date of birth;
    phone number: phone number; telephone number: telephone number; fax number: fax number;
    e mail: e-mail address; e mail address: e-mail address; email address: e-mail address;
    mail address: e-mail address; zip code: ZIP code; post code: postal code;
    check in: check-in date; check out: check-out date; check in date: check-in date;
    check out date: check-out date; date from: start date; date to: end date;
    from date: start date; to date: end date; valid from: start of validity;
    valid to: end of validity; valid until: end of validity; effective from: effective date;
    open date: opening date; due back: due date; close date: closing date; balance amount: balance;
    date start: start date; date end: end date;
    l name: last name; f name: first name; m name: middle name;
    hours week: hours per week; hours day: hours per day; hours month: hours per month;
    starts on: start date; ends on: end date; starts at: start time; ends at: end time;
    begins on: start date; expires on: expiry date;
    birth year: year of birth; death year: year of death; birth place: place of birth;
    death date: date of death; birth city: city of birth; start from: start;
    signed up: sign-up date; checked in: check-in date; checked out: check-out date;
    logged in: login date; handed in: hand-in date; moved in: move-in date;
    departs at: departure time; arrives at: arrival time; leaves at: departure time;
    accelerate: acceleration; melting: melting point; boiling: boiling point;
    term date: termination date; term dt: termination date;
    born year: year of birth; died year: year of death; year born: year of birth;
    year died: year of death; born on: date of birth; died on: date of death
""")
"""Whole names that are said otherwise than word by word."""

UNITS = _table("""
    km: km; cm: cm; mm: mm; mi: miles; ft: feet; kg: kg; lb: pounds; lbs: pounds; usd: US dollars;
    eur: euros; gbp: pounds sterling; chf: Swiss francs; jpy: yen; cad: Canadian dollars;
    aud: Australian dollars; inr: rupees; cny: yuan;
    sec: seconds; secs: seconds; seconds: seconds; mins: minutes; minutes: minutes; hrs: hours;
    hours: hours; days: days; ms: milliseconds; kwh: kWh; kw: kW; mw: MW; gw: GW; ha: hectares;
    sqm: square metres; sqkm: square kilometres; km2: square kilometres; m2: square metres;
    sqft: square feet; m3: cubic metres; kmh: km/h; kph: km/h; mph: mph; mb: MB; gb: GB; tb: TB;
    kcal: kcal; kj: kJ; hz: Hz; mhz: MHz; ghz: GHz; celsius: degrees Celsius;
    fahrenheit: degrees Fahrenheit; kelvin: kelvins; au: astronomical units; nmi: nautical miles;
    litres: litres; liters: liters; ml: ml; inches: inches; meters: meters; metres: metres;
    weeks: weeks; months: months; euros: euros; dollars: dollars; grams: grams; tonnes: tonnes;
    mg: mg; db: dB; hp: hp; rpm: rpm; pa: Pa; hpa: hPa; bar: bar; cents: cents;
    years: years; yrs: years;
    deg: degrees; degs: degrees; ebc: EBC
""")
"""Last parts of names that tell a unit, as the question says it."""

SHORT_UNITS = _table("""
    m altitude: m; m height: m; m length: m; m width: m; m depth: m; m distance: m; m elevation: m;
    m aperture: m; m diameter: m; m beam: m; m draught: m; m size: m; m ascent: m; m summit: m;
    min duration: minutes; min delay: minutes; min time: minutes; min length: minutes;
    min runtime: minutes; min response: minutes;
    min planned: minutes; min estimated: minutes; min boil: minutes;
    min wait: minutes; s duration: seconds; s exposure: seconds;
    s time: seconds; s length: seconds; h duration: hours; h time: hours; g weight: g; g mass: g;
    t weight: tonnes; t mass: tonnes; t load: tonnes; t cargo: tonnes;
    l volume: litres; l capacity: litres; in height: inches;
    in length: inches; in width: inches; nm distance: nautical miles;
    c temperature: degrees Celsius;
    m highest: m; c melting: degrees Celsius; c boiling: degrees Celsius; m span: m; m range: m;
    m radius: m; m thickness: m; m circumference: m;

    s interval: seconds; s delay: seconds; s timeout: seconds; l used: litres; l consumed: litres;
    m budget: million;
    m viewers: million; m revenue: million; m population: million; m sales: million;
    m inhabitants: million; m users: million;
    f temperature: degrees Fahrenheit; k temperature: kelvins; t tonnage: tonnes; g dose: g
""")
"""A unit of one or two letters is read as one only behind a word that it fits."""

NOT_NOUNS = word_set("""
    highest lowest average maximum minimum mean median total accelerate undergraduate graduate
    high low open close first last start end active new old big small best worst long short
    male female weekly monthly daily annual local foreign current other main from to since
    until when where who what teach learn arrive depart attend enrol enroll
""")
"""Words that cannot stand alone as a noun: a column of that name is spoken of by its name."""

ENTITY_SUFFIXES = word_set(
    "header headers hdr list lists table tables tbl tb master tab rows rec recs"
)
"""Last parts of a table's name that say nothing about its rows."""
ENTITY_PREFIXES = word_set("tbl t tb dim fact stg raw vw v app my lkp lkup lookup lu")
NOMINAL = _table("""
    arrange: arrangement; teach: teaching assignment; enroll: enrolment; enrol: enrolment;
    attend: attendance record; assign: assignment; participate: participation; own: ownership;
    employ: employment; appoint: appointment; perform: performance; operate: operation;
    receive: receipt; deliver: delivery; manage: management role; live: residence
""")
"""Verbs that serve as names of tables, as nouns."""
VERBS = word_set("""
    has have is are was lives plays belongs takes teaches owns uses contains involves includes
    likes follows works knows stays visits drives wins speaks happens treats undergoes
    prescribes advises supports directed written acts cast made classified lived worked
""")
"""First parts that make a table's name a clause and no noun."""
LINK_WORDS = word_set("in of to for on by with at from and or has is")
PREPOSITIONS = word_set("in to for on by with at from and or into onto via since until per as")
"""Words with which no noun starts or ends."""
COUNTABLE_ING = word_set("""
    building meeting booking training listing painting recording setting rating reading
    posting filing offering opening screening sailing warning drawing ending feeling ranking
    landing crossing wedding hearing earning saving spending holding ring king string thing
    evening morning wing spring sibling pudding ceiling
""")
"""Nouns in -ing that can be counted; others are taken for an activity."""

GROUPS = frozenset(["staff", "personnel", "faculty", "crew"])
"""Nouns of a whole, whose rows are members of it if they have names."""
AGENTS = _table("""
    directed: director; written: writer; given: giver; created: creator; made: maker; owned: owner;
    managed: manager; built: builder; designed: designer; published: publisher; painted: painter;
    performed: performer; sold: seller; supplied: supplier; taught: teacher; reviewed: reviewer;
    edited: editor; produced: producer; founded: founder; discovered: discoverer;
    invented: inventor; composed: composer; sung: singer; assigned: assigner; approved: approver
""")
"""Of "directed by", who did it."""

PERSONS = word_set("""
    person employee customer student singer teacher member author actor actress artist player
    patient doctor physician nurse user client professor instructor manager driver pilot
    passenger reviewer director writer researcher scientist composer musician conductor coach
    guest tenant owner juror candidate voter donor volunteer friend child man woman worker
    staff engineer astronaut astronomer athlete climber swimmer wrestler gymnast journalist
    editor reader borrower student captain lawyer judge officer adviser advisor supplier
    vendor seller buyer participant applicant visitor pianist photographer sailor farmer
    keeper librarian president king queen faculty member people contestant host chef customer
    pupil patron owner holder agent
    subscriber host referee entrepreneur investor party mayor governor
    hiker vet runner rider cyclist racer rower boxer golfer skier lecturer tutor trainer trainee
    intern resident prisoner suspect victim witness soldier detective firefighter paramedic midwife
    surgeon dentist therapist pharmacist carer cleaner cook waiter baker mechanic technician
    programmer developer designer architect analyst consultant accountant auditor broker dealer
    trader cashier clerk receptionist secretary assistant attorney politician senator minister
    diplomat monarch emperor priest philosopher poet novelist playwright librettist songwriter
    dancer choreographer comedian presenter narrator streamer sculptor painter illustrator
    historian mathematician physicist chemist biologist cosmonaut navigator explorer discoverer
    inventor founder mentor sibling parent relative guardian recipient beneficiary claimant
    defendant landlord renter buyer bidder shopper tourist traveller commuter courier supporter
    follower moderator operator dispatcher steward spacewalker recruit umpire goalkeeper
    salesperson salesman collector breeder gardener
""")
"""Nouns of whom one says "who" and "from France"."""
PLACES = word_set("""
    city town country state county region continent district campus stadium station airport
    port building hotel restaurant museum school university hospital shop store branch office
    venue theatre theater park farm mountain peak river lake island bridge location address
    room site library club company warehouse factory cinema church college department house
    property hut volcano observatory village province
""")
PLACE_COLUMNS = word_set("""
    country city town state county region continent district province nationality hometown
    village island
""")
"""Columns whose value is said with "from" (of persons) or "in" (of places)."""

SUPERLATIVES = {
    "age": ("oldest", "youngest", "older", "younger"),
    "price": ("most expensive", "cheapest", "more expensive", "cheaper"),
    "cost": ("most expensive", "cheapest", "more expensive", "cheaper"),
    "weight": ("heaviest", "lightest", "heavier", "lighter"),
    "length": ("longest", "shortest", "longer", "shorter"),
    "height": ("tallest", "shortest", "taller", "shorter"),
    "altitude": ("highest", "lowest", "higher", "lower"),
    "elevation": ("highest", "lowest", "higher", "lower"),
    "depth": ("deepest", "shallowest", "deeper", "shallower"),
}
"""Quantities that have adjectives of their own: superlatives, then comparatives."""

ADJECTIVES = word_set("""
    male female active available public private valid open closed new free alive visible
    hidden internal external domestic foreign international national local official main
    primary final full-time part-time online offline remote urgent optional mandatory current
    former dead vegetarian vegan indoor outdoor digital manual electric automatic temporary
    permanent seasonal global regional rural urban organic historic critical essential default
    dormant pregnant frequent recent permanent independent healthy sick ready busy empty full
    late early overdue unique fresh frozen hot cold dry wet toxic hazardous fragile rainy sunny
    cloudy heavy light live mobile nocturnal carnivorous bilingual married single divorced
    coastal navigable tidal inland extinct endemic anonymous adult minor senior junior special
    regular extra real fake true false wooden metallic waterproof gluten-free tax-free duty-free
    barrier-free pet-friendly child-friendly family-friendly double-sided up-to-date on-site
    in-house open-source self-employed bankrupt absent present professional amateur paperback
    confidential secret virtual physical chronic acute fatal deciduous evergreen edible
    partial complete incomplete direct indirect corrupt hybrid
""")
"""Words of what something is like whose letters do not tell it."""

PATHS = word_set("""
    route trail trip ride flight journey voyage leg segment road race run stage track hike walk
    path line section tour crossing
""")
"""What is long or short by its distance."""

OCCASIONS = word_set("""
    lesson flight call meeting session class course visit trip ride journey episode track song film
    movie match game shift event show talk interview appointment treatment workout exercise stage
""")
"""What lasts: its minutes are its duration."""

MEASURES = word_set("""
    capacity size area length duration distance weight volume height width depth limit
""")
"""What may be told in any unit: `capacity_pallets`."""

TIMED = word_set("""
    response boil resolution lead turnaround cooking preparation setup cleaning idle review waiting
    processing resolve delivery approval travel assembly curing drying baking brewing repair
""")
"""What takes time: its minutes are its time."""

BUYERS = word_set("customer client buyer guest supplier vendor donor patient owner tenant")
"""Persons who deal with somebody, and join nobody."""

FREE_TEXTS = word_set("""
    description descriptions body text note notes remark remarks comment comments message subject
    address summary reason details content
""")
"""What people write freely, also where they often write the same."""

MONEY = frozenset(
    unit
    for unit in UNITS.values()
    if unit.endswith(("dollars", "euros", "sterling", "francs", "yen", "rupees", "yuan", "cents"))
)
"""Units of which so much is an amount, and no number of things."""

MEASURED = _table("""
    kg: weight; g: weight; tonnes: weight; pounds: weight; grams: weight; km: distance;
    miles: distance; minutes: duration; hours: duration; seconds: duration
""")
"""What a unit measures, for names that tell nothing else: `max_kg`."""

ADDED = word_set("""
    number count quantity amount total sales population visits hours minutes salary cost
    revenue budget profit fee bonus attendance expense expenses income payment donation
    turnover capacity enrollment enrolment output production charge fine prize
""")
"""Last words of quantities of which a sum means something."""
PAYMENTS = word_set("""
    paid charged billed refunded owed spent donated invested raised earned budgeted due awarded
    invoiced credited saved lent borrowed
""")
"""Participles of which a number is an amount, and no count."""
CRYPTIC = word_set("""
    col column field fld attr attribute var variable val value x y z c f v d k q feat feature
    dim param key data item m n p s t w a b e g h i j l o r u
""")
"""Stems that say nothing when a number or nothing follows."""
