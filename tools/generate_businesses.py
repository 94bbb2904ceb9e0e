"""Generate the rows of the two bundled databases that model businesses: `airline` and `clinic`.

Usage: `python tools/generate_businesses.py [FOLDER]`. It writes `FOLDER/airline/*.csv` and
`FOLDER/clinic/*.csv`, by default over the checked-in ones. Two things it reads and never writes:
`schema.json`, which has the columns, and `airports.csv`, since the airports are real and only what
happens between them is invented. One seed for each database makes every row, so that running it
again gives the same bytes, which a test proves.

The rows are dependent where life makes them so: a flight that is cancelled has no aircraft and no
delay, a visit that was missed has no diagnosis, an invoice is paid after it was issued. What is
unknown or does not apply is NULL, written `\\N`.
"""

import csv
import io
import json
import math
import random
import sys
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

Value = str | int | float | None
Row = tuple[Value, ...]
Tables = dict[str, list[Row]]

DATA = Path(__file__).resolve().parent.parent / "data" / "sql2"
SEEDS = {"airline": 1903, "clinic": 1847}
HUB = "LIS"

MODELS = (("Heron 76", 76, 2400), ("Heron 110", 110, 3600), ("Albatross 180", 180, 5200))
TAILS = "Aurora Brisa Cabo Douro Estrela Faro Gaivota Horta Ibis Jade Lua Mar Nazaré Ondina"
REASONS = ("weather", "technical", "crew", "air traffic control", "late arrival", "security")
TIERS = (None, None, None, "bronze", "bronze", "silver", "gold")
WOMEN = "Amélie Beatriz Dagmar Elif Greta Inês Katarina Maeve Nadia Priya Rosa Tereza Vera Zoë"
MEN = "Carlos Farid Henrik Jonas Luís Oskar Quentin Sven Umar Viktor Xavier Yusuf"
LAST = (
    "Almeida Berg Costa Duarte Eriksen Fischer García Haddad Ivanova Jansen Kowalski Lindqvist "
    "Moreau Novak O'Brien Papadakis Quiroga Rossi Silva Tanaka Ueda Virtanen Weber Yilmaz"
)
HOMES = ("Portugal", "Spain", "France", "Germany", "Switzerland", "Ireland", "Norway", "Greece")
SPECIALTIES = ("general practice", "cardiology", "dermatology", "orthopaedics", "paediatrics")
TOWNS = ("Aldermoor", "Brackley Green", "Castleford", "Dunmere", "Eastwick", "Fernhill")
INSURERS = ("Concordia", "Helvia", "Meridian Health", None)
AILMENTS: dict[str, str] = {
    "general practice": "J06 common cold, R51 headache, K21 acid reflux, I10 high blood pressure",
    "cardiology": "I10 high blood pressure, I20 angina, I48 atrial fibrillation",
    "dermatology": "L20 eczema, L40 psoriasis, L70 acne",
    "orthopaedics": "M54 back pain, S93 sprained ankle, M17 knee arthrosis",
    "paediatrics": "J06 common cold, H66 middle ear infection, L20 eczema",
}
DRUGS: dict[str, tuple[str, tuple[int, ...], bool]] = {
    "R51": ("ibuprofen", (200, 400), False),
    "K21": ("omeprazole", (20, 40), False),
    "I10": ("ramipril", (5, 10), True),
    "I20": ("bisoprolol", (5, 10), True),
    "I48": ("apixaban", (5,), True),
    "L70": ("doxycycline", (50, 100), False),
    "M54": ("ibuprofen", (400, 600), False),
    "S93": ("paracetamol", (500, 1000), False),
    "M17": ("naproxen", (250, 500), True),
    "H66": ("amoxicillin", (250, 500), False),
}


def names(rng: random.Random, count: int) -> list[str]:
    """Different full names, in random order."""
    return rng.sample(
        [f"{first} {last}" for first in f"{WOMEN} {MEN}".split() for last in LAST.split()], count
    )


def day(rng: random.Random, first: str, last: str) -> date:
    """A day of a range, both ends among it."""
    start = date.fromisoformat(first)
    return start + timedelta(days=rng.randint(0, (date.fromisoformat(last) - start).days))


def days(rng: random.Random, first: str, last: str, count: int) -> list[str]:
    """Days of a range in order; some may occur twice."""
    return sorted(str(day(rng, first, last)) for _ in range(count))


def clock(minutes: int) -> str:
    """A time of day from the minutes since midnight."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def airports() -> dict[str, tuple[float, float]]:
    """The code and place, in radians, of every airport."""
    with (DATA / "airline" / "airports.csv").open(encoding="utf-8", newline="") as file:
        places = [(r["iata"], r["latitude_deg"], r["longitude_deg"]) for r in csv.DictReader(file)]
    return {code: (math.radians(float(lat)), math.radians(float(lon))) for code, lat, lon in places}


def distance_km(a: tuple[float, float], b: tuple[float, float]) -> int:
    """Great-circle distance of two places given in radians, rounded to 10 km."""
    across = math.sin((b[0] - a[0]) / 2) ** 2
    across += math.cos(a[0]) * math.cos(b[0]) * math.sin((b[1] - a[1]) / 2) ** 2
    return round(2 * 6371 * math.asin(math.sqrt(across)) / 10) * 10


def airline(seed: int) -> Tables:
    """All tables of `airline`."""
    rng = random.Random(seed)
    aircraft = fleet(rng)
    flights = timetable(rng, aircraft)
    passengers: list[Row] = []
    for number, name in enumerate(names(rng, 64), start=1):
        tier = rng.choice(TIERS)
        joined = str(day(rng, "2015-01-01", "2023-12-31")) if tier else None
        born = str(day(rng, "1948-01-01", "2009-12-31"))
        passengers.append((number, name, rng.choice(HOMES), born, tier, joined))
    return {
        "aircraft": aircraft,
        "flights": flights,
        "delays": hold_ups(rng, flights),
        "passengers": passengers,
        "bookings": bookings(rng, flights, len(passengers)),
    }


def fleet(rng: random.Random) -> list[Row]:
    """The aircraft in the order of their delivery; the oldest two are retired."""
    tails = TAILS.split()
    rows: list[Row] = []
    for number, delivered in enumerate(days(rng, "2006-01-01", "2023-06-30", len(tails)), start=1):
        model, seats, range_km = MODELS[rng.choice((0, 1, 1, 2, 2))]
        retired = f"2024-0{3 + number}-01" if number <= 2 else None
        tail = tails[number - 1]
        rows.append((number, tail, model, seats, range_km, delivered, rng.randint(0, 1), retired))
    return rows


def timetable(rng: random.Random, aircraft: Sequence[Row]) -> list[Row]:
    """Flights between the hub and the other airports, out or back, in the order of their days."""
    places = airports()
    codes = [code for code in places if code != HUB]
    rows: list[Row] = []
    for number, flown_on in enumerate(days(rng, "2024-01-01", "2024-12-31", 150), start=1):
        code = rng.choice(codes)
        origin, destination = rng.choice(((HUB, code), (code, HUB)))
        km = distance_km(places[origin], places[destination])
        fit = [r for r in aircraft if int(str(r[4])) >= km and str(r[7] or "9") > flown_on]
        status = rng.choices(("landed", "cancelled", "diverted"), (88, 8, 4))[0]
        plane = None if status == "cancelled" else rng.choice(fit)[0]
        flight = f"MR{100 + 2 * codes.index(code) + (origin == HUB)}"
        departs = clock(rng.randrange(360, 1320, 5))
        minutes = 30 + round(km / 13 / 5) * 5
        rows.append(
            (number, flight, flown_on, departs, origin, destination, km, minutes, plane, status)
        )
    return rows


def hold_ups(rng: random.Random, flights: Iterable[Row]) -> list[Row]:
    """Delays of flights that took off; a flight may have two of different reasons."""
    rows: list[Row] = []
    for flight in flights:
        count = 0 if flight[9] == "cancelled" else rng.choices((0, 1, 2), (62, 28, 10))[0]
        for reason in rng.sample(REASONS, count):
            rows.append((len(rows) + 1, flight[0], reason, rng.randrange(5, 185, 5)))
    return rows


def bookings(rng: random.Random, flights: Sequence[Row], passengers: int) -> list[Row]:
    """Seats that were sold; the price follows distance and cabin, and only some rate the flight."""
    rows: list[Row] = []
    regulars = [*range(1, passengers - 5), *range(1, 15), *range(1, 8)]
    for flight in flights:
        for passenger in sorted(set(rng.choices(regulars, k=rng.randint(0, 4)))):
            cabin = rng.choices(("economy", "business"), (80, 20))[0]
            base = 29 + int(str(flight[6])) * rng.uniform(0.05, 0.14)
            price = round(base * (3 if cabin == "business" else 1), 2)
            early = timedelta(days=rng.randint(1, 120))
            booked_on = str(date.fromisoformat(str(flight[2])) - early)
            rated = flight[9] != "cancelled" and rng.random() < 0.45
            rating = rng.choices((1, 2, 3, 4, 5), (1, 2, 4, 6, 5))[0] if rated else None
            bags = rng.choices((0, 1, 2, 3), (4, 5, 2, 1))[0]
            booking = (len(rows) + 1, passenger, flight[0], booked_on, cabin, price, bags, rating)
            rows.append(booking)
    return rows


def clinic(seed: int) -> Tables:
    """All tables of `clinic`."""
    rng = random.Random(seed)
    people = names(rng, 84)
    doctors: list[Row] = []
    for number, joined in enumerate(days(rng, "2004-01-01", "2022-12-31", 12), start=1):
        left = f"2024-{3 * number:02d}-30" if number in (2, 3) else None
        specialty = SPECIALTIES[(number - 1) % len(SPECIALTIES)]
        doctors.append((number, f"Dr {people[number - 1]}", specialty, joined, left))
    patients: list[Row] = []
    for number, registered in enumerate(days(rng, "2008-01-01", "2024-03-31", 72), start=1):
        born = day(rng, "1936-01-01", "2019-12-31")
        registered = max(registered, str(born + timedelta(days=30)))
        insurer, family = rng.choice(INSURERS), rng.choice((1, 6, 11, None))
        town, name = rng.choice(TOWNS), people[11 + number]
        sex = "f" if name.split()[0] in WOMEN.split() else "m"
        patients.append((number, name, str(born), sex, town, insurer, registered, family))
    visits = appointments(rng, doctors, patients)
    found = diagnoses(rng, doctors, visits)
    return {
        "doctors": doctors,
        "patients": patients,
        "appointments": visits,
        "diagnoses": found,
        "prescriptions": prescriptions(rng, found),
        "invoices": invoices(rng, visits, patients),
    }


def appointments(rng: random.Random, doctors: Sequence[Row], patients: Sequence[Row]) -> list[Row]:
    """Visits of the year 2024 in order, with doctors who are there and suit the patient's age."""
    rows: list[Row] = []
    for number, on in enumerate(days(rng, "2024-04-01", "2024-12-20", 180), start=1):
        patient = rng.choice(patients[:-4])
        is_child = str(patient[2]) > "2008"
        doctor = rng.choice(
            [d for d in doctors if str(d[4] or "9") > on and (d[2] == "paediatrics") == is_child]
        )
        status = rng.choices(("kept", "cancelled", "missed"), (82, 12, 6))[0]
        minutes = rng.choice((10, 15, 15, 20, 30, 45))
        starts = clock(rng.randrange(480, 1050, 15))
        rows.append((number, patient[0], doctor[0], on, starts, minutes, status))
    return rows


def diagnoses(rng: random.Random, doctors: Sequence[Row], visits: Iterable[Row]) -> list[Row]:
    """What was found in the visits that took place; in some nothing, in a few two things."""
    specialty = {doctor[0]: str(doctor[2]) for doctor in doctors}
    rows: list[Row] = []
    for visit in visits:
        count = rng.choices((0, 1, 2), (20, 65, 15))[0] if visit[6] == "kept" else 0
        for ailment in rng.sample(AILMENTS[specialty[visit[2]]].split(", "), count):
            code, name = ailment.split(" ", 1)
            severity = rng.choice(("mild", "mild", "moderate", "severe", None))
            rows.append((len(rows) + 1, visit[0], code, name, severity))
    return rows


def prescriptions(rng: random.Random, found: Iterable[Row]) -> list[Row]:
    """Drugs for diagnoses that have one; those taken for good have no number of days."""
    rows: list[Row] = []
    for diagnosis in found:
        drug = DRUGS.get(str(diagnosis[2]))
        if drug is None or rng.random() < 0.15:
            continue
        lasting = drug[2] and rng.random() < 0.7
        length = None if lasting else rng.choice((3, 5, 7, 10, 14, 28))
        dose, daily = rng.choice(drug[1]), rng.randint(1, 3)
        rows.append((len(rows) + 1, diagnosis[0], drug[0], dose, daily, length))
    return rows


def invoices(rng: random.Random, visits: Iterable[Row], patients: Sequence[Row]) -> list[Row]:
    """Bills for visits that were kept, and a fee for those missed; some are not paid yet."""
    insurers = {patient[0]: patient[5] for patient in patients}
    rows: list[Row] = []
    for visit in visits:
        if visit[6] == "cancelled":
            continue
        missed = visit[6] == "missed"
        amount = 25.0 if missed else round(18 + int(str(visit[5])) * rng.uniform(2.1, 3.4), 2)
        payer = "patient" if missed or insurers[visit[1]] is None else "insurer"
        issued = date.fromisoformat(str(visit[3])) + timedelta(days=rng.randint(1, 14))
        paid = issued + timedelta(days=rng.randint(2, 60)) if rng.random() < 0.85 else None
        paid_on = str(paid) if paid else None
        rows.append((len(rows) + 1, visit[0], str(issued), amount, payer, paid_on))
    return rows


def as_csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """The content of a table's file."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([r"\N" if value is None else value for value in row] for row in rows)
    return text.getvalue()


def main(folder: Path = DATA) -> None:
    """Write the generated tables of both databases under a folder."""
    for db_id, build in (("airline", airline), ("clinic", clinic)):
        (folder / db_id).mkdir(parents=True, exist_ok=True)
        schema = json.loads((DATA / db_id / "schema.json").read_text(encoding="utf-8"))
        columns = {t["name"]: [c["name"] for c in t["columns"]] for t in schema["tables"]}
        for table, rows in build(SEEDS[db_id]).items():
            path = folder / db_id / f"{table}.csv"
            path.write_bytes(as_csv(columns[table], rows).encode())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
