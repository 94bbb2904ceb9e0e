"""Turn a database without questions into a training environment.

    python examples/own_database.py [FILE]    # writes FILE (default: staff.db), and plays tasks

At the end it prints the command that trains the tiny model on the database, which takes about ten
minutes on one core.
"""

import random
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import gymnasium as gym

import sqlgym  # noqa: F401 (registers the environments)
from toolgym import policies, rollout

TASKS = '{"n": 6000, "hardness": {"easy": 1, "medium": 1}, "variants": 400}'
FIRST = "Ada Ben Cleo Dan Eva Finn Gus Hana Ivo Jane Kim Leo Mia Ned Olga Paul Quin Rosa Sam Tess"
LAST = "Ash Bell Cole Dunn Ford Gray Hart King Lane Moss"
TEAMS, CITIES = "sales support design finance legal", "Rome Oslo Lima Cairo Paris Delhi"


def make(path: Path) -> None:
    """Write a database with one table of 160 people."""
    draw = random.Random(0)
    names = [f"{one} {two}" for one in FIRST.split() for two in LAST.split()]
    draw.shuffle(names)
    people = [
        (
            *(number, name, draw.choice(TEAMS.split()), draw.choice(CITIES.split())),
            *(draw.randint(20, 64), draw.randrange(2000, 6000, 100)),
        )
        for number, name in enumerate(names[:160], start=1)
    ]
    columns = "id INTEGER PRIMARY KEY, name TEXT, team TEXT, city TEXT, age INTEGER, salary INTEGER"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE IF EXISTS staff")
        database.execute(f"CREATE TABLE staff ({columns})")
        database.executemany("INSERT INTO staff VALUES (?, ?, ?, ?, ?, ?)", people)


def main(path: str) -> None:
    """Create the database, print a generated task, and let the expert play."""
    make(Path(path))
    env = gym.make("sqlgym/Explore-v0", dataset=path)
    question, info = env.reset(seed=0)
    print(f"{len(env.unwrapped.tasks)} tasks in train; one of them is {info['task_id']}:")
    print(question.splitlines()[0])
    played = rollout.evaluate(
        "sqlgym/Explore-v0", policies.ExpertPolicy(), n=30, dataset=path, split="dev"
    )
    print(f"the expert solves {played.accuracy:.0%} of {played.episodes} tasks of dev")
    print("\nTrain the tiny model on it:\n")
    print(f"toolgym train sqlgym/Explore-v0 --dataset {path} \\")
    print(f"    --set 'synthesis={TASKS}' \\")
    print("    --sft-steps 1500 --demonstrations 9600")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "staff.db")
