"""A database with what the bundled ones lack.

Employees with managers, departments within departments, flights between two airports, matches
between two teams, and orders with two dates.
"""

import random
import sqlite3
from datetime import date, timedelta

SCRIPT = """
CREATE TABLE departments (id INTEGER PRIMARY KEY, name TEXT, budget REAL,
    parent_department_id INT REFERENCES departments(id));
CREATE TABLE employees (emp_id INTEGER PRIMARY KEY, name TEXT, salary INT, city TEXT, hired TEXT,
    manager_id INT REFERENCES employees(emp_id), department_id INT REFERENCES departments(id),
    is_remote INT);
CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT, city TEXT, signed_up TEXT);
CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INT REFERENCES customers,
    order_date TEXT, shipped_date TEXT, amount REAL, channel TEXT);
CREATE TABLE airports (code TEXT PRIMARY KEY, name TEXT, country TEXT, elevation_ft INT);
CREATE TABLE flights (flight_no TEXT PRIMARY KEY, airline TEXT,
    origin_airport TEXT REFERENCES airports(code),
    destination_airport TEXT REFERENCES airports(code), distance_km INT, departure_date TEXT);
CREATE TABLE teams (team_id INTEGER PRIMARY KEY, name TEXT, city TEXT, founded INT);
CREATE TABLE matches (match_id INTEGER PRIMARY KEY, home_team_id INT REFERENCES teams(team_id),
    away_team_id INT REFERENCES teams(team_id), match_date TEXT, attendance INT, home_goals INT);
"""
DEPARTMENTS = ("Sales", "Research", "Support", "Finance", "Legal", "Logistics", "Design", "Labs")
CITIES = ("Oslo", "Rome", "Lyon", "Graz", "Turku", "Cork")
FIRST = [
    "Ann",
    "Bob",
    "Cleo",
    "Dan",
    "Eve",
    "Finn",
    "Gus",
    "Hana",
    "Ivo",
    "Jana",
    "Kai",
    "Lena",
    "Milo",
    "Nora",
    "Otto",
    "Pia",
]
LAST = ("Stone", "Rivers", "Hill", "Wood", "Marsh", "Field", "Lake", "Grove", "Moor")
PORTS = {"Oslo": "Norway", "Bergen": "Norway", "Rome": "Italy", "Bari": "Italy", "Milan": "Italy"}
PORTS |= {"Lyon": "France", "Paris": "France", "Graz": "Austria", "Vienna": "Austria"}
TEAMS = ("Harbour Rovers", "North City", "Red Lions", "Lake Town", "Iron Works", "Sun Club")


def make(path):
    """Write the database."""
    draw = random.Random("firm")
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    draw.shuffle(names)
    with sqlite3.connect(path) as connection:
        connection.executescript(SCRIPT)
        for table, rows in tables(draw, names).items():
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    connection.close()
    return path


def day(draw, first, last):
    start = date(first, 1, 1)
    return start + timedelta(days=draw.randrange((date(last, 12, 31) - start).days))


def tables(draw, names):
    """The rows of each table."""
    made = {
        "departments": [
            (n, name, draw.randint(50, 900) * 1000.0, None if n < 4 else draw.randint(1, 3))
            for n, name in enumerate(DEPARTMENTS, 1)
        ],
        "employees": [
            (
                n,
                names[n],
                draw.randint(280, 990) * 100,
                draw.choice(CITIES),
                str(day(draw, 2009, 2023)),
                None if n < 4 else draw.randint(1, min(n - 1, 15)),
                draw.randint(1, len(DEPARTMENTS)),
                draw.randint(0, 1),
            )
            for n in range(1, 61)
        ],
        "customers": [
            (n, names[60 + n], draw.choice((*CITIES, "Bari")), str(day(draw, 2016, 2022)))
            for n in range(1, 41)
        ],
    }
    orders = []
    for n in range(1, 301):
        placed = day(draw, 2019, 2024)
        shipped = (
            str(placed + timedelta(days=41 if n == 250 else draw.randint(0, 30))) if n % 9 else None
        )
        amount, channel = draw.randint(500, 90000) / 100, draw.choice(("web", "phone", "shop"))
        orders.append((n, draw.randint(1, 36), str(placed), shipped, amount, channel))
    codes = [(name[:3].upper(), f"{name} Airport", land) for name, land in PORTS.items()]
    flights = []
    for n in range(120):
        ends = draw.sample([code for code, _, _ in (codes[:8] if n % 2 else codes[1:])], 2)
        airline = draw.choice(("Nordair", "Blue Wing", "Alpine"))
        flights.append(
            (f"XA{n}", airline, *ends, draw.randint(150, 2900), str(day(draw, 2023, 2024)))
        )
    fixtures = [(a, b) for a in range(1, 7) for b in range(1, 7) if a != b] * 3
    matches = [
        (n, *pair, str(day(draw, 2021, 2023)), draw.randint(800, 42000), draw.randint(0, 5))
        for n, pair in enumerate(draw.sample(fixtures, 70), 1)
    ]
    teams = [(n, t, draw.choice(CITIES), 1890 + 7 * n) for n, t in enumerate(TEAMS, 1)]
    airports = [(*code, draw.randint(3, 1500)) for code in codes]
    return made | {
        "orders": orders,
        "airports": airports,
        "flights": flights,
        "teams": teams,
        "matches": matches,
    }
