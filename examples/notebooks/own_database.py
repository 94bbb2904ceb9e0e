# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A database of your own
#
# You have an SQLite file, and nobody has written questions about it. This notebook makes a training
# environment of it: questions on four levels of hardness are written for its tables, each with the
# SQL that answers it, and each is checked by running it. It takes seconds, and needs
# `pip install toolgym` only.
#
# Put the path of your file here. `None` makes a small library, so that the notebook runs as it is.

# %% tags=["parameters"]
DATABASE = None

# %%
import hashlib
import random
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path

import gymnasium as gym

import sqlgym
import toolgym
from sqlgym.database.database import open_database

# %%
TITLES = ["Harbour", "Winter", "Garden", "River", "Letters", "Bridge", "Summer", "Island"]
NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jane", "Kim", "Leo"]


def library(path: Path) -> None:
    """Write a library of sixty books and its loans; the same one every time."""
    draw = random.Random(0)
    genres = ["novel", "poetry", "history", "travel"]
    books = [
        (n, f"{draw.choice(TITLES)} {n}", draw.choice(genres), draw.randint(1950, 2020))
        for n in range(1, 61)
    ]
    loans = [
        (n, draw.randint(1, 60), draw.choice(NAMES), draw.randint(1, 40)) for n in range(1, 201)
    ]
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            "CREATE TABLE books"
            " (book_id INTEGER PRIMARY KEY, title TEXT, genre TEXT, year INTEGER);"
            "CREATE TABLE loans (loan_id INTEGER PRIMARY KEY,"
            " book_id INTEGER REFERENCES books, reader TEXT, days INTEGER);"
        )
        database.executemany("INSERT INTO books VALUES (?, ?, ?, ?)", books)
        database.executemany("INSERT INTO loans VALUES (?, ?, ?, ?)", loans)


if DATABASE is None:
    DATABASE = Path(tempfile.mkdtemp()) / "library.db"
    library(DATABASE)

before = hashlib.sha256(Path(DATABASE).read_bytes()).hexdigest()

# %% [markdown]
# ## Look into it
#
# The agent's queries go through this object. It gives rows, and nothing else.

# %%
database = open_database(DATABASE)
table = database.schema.tables[0].name
result = database.query(f'SELECT * FROM "{table}"')
print(result.columns)
for row in result.rows[:5]:
    print(row)

# %% [markdown]
# Whatever a model writes, the file stays as it is:

# %%
try:
    database.query(f'DELETE FROM "{table}"')
except toolgym.ToolError as refused:
    print(refused)

# %% [markdown]
# ## The questions
#
# One argument makes the environment. The first time, it writes the questions and keeps them in the
# cache folder; after that it finds them there.

# %%
env = gym.make("sqlgym/Explore-v0", dataset=str(DATABASE)).unwrapped
env.tasks

# %% [markdown]
# How many there are on each level, and one of the hardest. The gold SQL is what the answer is
# judged by; the agent never sees it.

# %%
levels = Counter(task.hardness for task in env.tasks)
print(dict(levels))

# %%
hardest = max(env.tasks, key=lambda task: ["easy", "medium", "hard", "extra"].index(task.hardness))
print(hardest.question)
print(hardest.gold_sql)

# %%
print(database.query(hardest.gold_sql).rows)

# %% [markdown]
# ## Is it fair?
#
# The expert plays through the same tools as any agent, so what it solves can be solved. `dev` holds
# other questions than `train`.

# %%
expert = toolgym.evaluate("sqlgym/Explore-v0", "expert", n=30, dataset=str(DATABASE), split="dev")
expert

# %% [markdown]
# An answer can be judged without an episode, too:

# %%
gold = database.query(hardest.gold_sql).rows
for answer in ([list(row) for row in gold], "no idea"):
    print(f"{str(answer)[:60]!r} is right: {sqlgym.check_answer(gold, answer).equal}")

# %% [markdown]
# And after all that, not a byte of the file has changed:

# %%
after = hashlib.sha256(Path(DATABASE).read_bytes()).hexdigest()
print("unchanged:", before == after)

# %% [markdown]
# ## Train on it
#
# This command teaches the tiny model your database, in about ten minutes of one core, and needs
# `pip install 'toolgym[train]'`. It has more questions written, of the two easier levels, which
# suit so small a model.

# %%
questions = '{"n": 6000, "hardness": {"easy": 1, "medium": 1}, "variants": 400}'
print(f"toolgym train sqlgym/Explore-v0 --dataset {DATABASE} \\")
print(f"    --set 'synthesis={questions}' \\")
print("    --sft-steps 1500 --demonstrations 9600")
