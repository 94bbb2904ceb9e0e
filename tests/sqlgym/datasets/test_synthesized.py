"""A database file without questions is a data set: tasks are written, kept, and divided."""

import random
import shutil
import sqlite3
from pathlib import Path

import gymnasium as gym
import pytest

import sqlgym
from sqlgym.datasets import synthesized
from sqlgym.datasets.synthesized import task_id
from toolgym import ConfigurationError, rollout
from toolgym.long_work import progress_listener
from toolgym.policies import ExpertPolicy

ROOT = Path(__file__).resolve().parents[3]
FEW = {"n": 6, "hardness": {"easy": 1}}
OF_ALL_LEVELS = {"n": 16}


def make_database(path, seed=0):
    """Shops and what they sell: enough to ask about, the same for the same seed."""
    draw = random.Random(f"bare-{seed}")
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE shop (shop_id INTEGER PRIMARY KEY, name TEXT, city TEXT, opened TEXT);"
        "CREATE TABLE article (article_id INTEGER PRIMARY KEY, name TEXT, price REAL,"
        " weight INTEGER, shop_id INTEGER REFERENCES shop (shop_id));"
    )
    cities = ("Oslo", "Rome", "Lima", "Cairo")
    shops = [
        (i, f"Shop {chr(65 + i)}{chr(70 + i)}", draw.choice(cities), f"20{10 + i}-0{1 + i % 9}-15")
        for i in range(12)
    ]
    connection.executemany("INSERT INTO shop VALUES (?, ?, ?, ?)", shops)
    articles = [
        (i, f"{a}{b}", draw.randrange(100, 9_000) / 100, draw.randrange(5, 900), draw.randrange(12))
        for i, (a, b) in enumerate(
            (a, b) for a in ("Blue ", "Red ", "Old ") for b in "KLMNOPQRSTUV"
        )
    ]
    connection.executemany("INSERT INTO article VALUES (?, ?, ?, ?, ?)", articles)
    connection.commit()
    connection.close()
    return path


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """One database file."""
    return make_database(tmp_path_factory.mktemp("bare") / "shop.db")


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A cache folder of this test's own, and a process that remembers nothing."""
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "cache"))
    sqlgym.datasets.load._load_bare.cache_clear()
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("ending", "env_id"), [("db", "sqlgym/Explore-v0"), ("bak", "sqlgym/TextToSQL-v0")]
)
def test_a_database_file_is_an_environment_in_one_line(shop, tmp_path, ending, env_id):
    file = shutil.copy(shop, tmp_path / f"my.{ending}")
    tasks = sqlgym.load_tasks(file, "train", synthesis=FEW)
    env = gym.make(env_id, dataset=tasks)
    record = rollout.play(env, ExpertPolicy(), seed=1)

    assert record.correct
    assert tasks[0].item == "my"
    assert tasks[0].hardness in ("easy", "medium", "hard", "extra")


def test_every_task_is_playable_and_the_expert_solves_it(shop):
    tasks = sqlgym.load_tasks(shop, "all", synthesis=OF_ALL_LEVELS)
    evaluation = rollout.evaluate("sqlgym/Explore-v0", ExpertPolicy(), dataset=tasks)

    assert len(tasks) == OF_ALL_LEVELS["n"]
    assert tasks.check() == {}
    assert (evaluation.episodes, evaluation.accuracy) == (len(tasks), 1.0)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("shop", "shop"),
        ("my_shop-2.old", "my_shop-2.old"),
        ("Bücher", "Bücher"),
        ("Bu\u0308cher", "Bu\u0308cher"),
        ("my shop", "my_shop"),
        ("a\u00a0b\tc", "a_b_c"),
        ("it's (new) & $1; *?/", "it_s__new_____1_____"),
    ],
)
def test_an_id_needs_no_quotes(name, shown):
    assert task_id(name, "SELECT 1").rpartition("-")[0] == shown


def test_databases_whose_names_differ_in_odd_characters_have_tasks_of_their_own(shop, tmp_path):
    names = ("my shop", "my_shop", "my+shop")
    for name in names:
        shutil.copy(shop, tmp_path / f"{name}.db")
    together = sqlgym.load_tasks(tmp_path, "all", synthesis=FEW)
    alone = sqlgym.load_tasks(tmp_path / "my shop.db", "all", synthesis=FEW)

    assert len(set(together.ids)) == len(together) == 3 * len(alone)
    assert {task.item for task in together} == set(names)
    assert {each.rpartition("-")[0] for each in together.ids} == {"my_shop"}
    assert set(alone.ids) <= set(together.ids)
    assert rollout.play("sqlgym/Explore-v0", ExpertPolicy(), task_id=alone.ids[0], dataset=alone)


def test_the_second_start_writes_nothing(shop, fresh, monkeypatch):
    first = sqlgym.load_tasks(shop, "train", synthesis=FEW)
    sqlgym.datasets.load._load_bare.cache_clear()

    def explode(*arguments, **options):
        raise AssertionError("it was written again")

    monkeypatch.setattr("sqlgym.synthesis.synthesize", explode)
    again = sqlgym.load_tasks(shop, "train", synthesis=FEW)
    assert [(t.id, t.question, t.gold_sql) for t in again] == [
        (t.id, t.question, t.gold_sql) for t in first
    ]
    changes = {"n": 7, "seed": 1, "hardness": None, "tables": ["shop"], "variants": 9}
    for change in ({name: value} for name, value in changes.items()):
        with pytest.raises(AssertionError, match="written again"):
            sqlgym.load_tasks(shop, "train", synthesis=FEW | change)


def test_another_content_is_another_set_and_another_place_is_not(shop, fresh, tmp_path):
    file = shutil.copy(shop, tmp_path / "shop.sqlite")
    sqlgym.load_tasks(file, "all", synthesis=FEW)
    moved = shutil.copy(shop, tmp_path / "shop.db")
    sqlgym.load_tasks(moved, "all", synthesis=FEW)
    kept = list((fresh / "sql" / "synthesized").iterdir())
    assert len(kept) == 1
    with sqlite3.connect(moved) as connection:
        connection.execute("UPDATE article SET price = price + 1")
    sqlgym.load_tasks(moved, "all", synthesis=FEW)
    assert len(list((fresh / "sql" / "synthesized").iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b'{"entries": []'])
def test_what_is_damaged_in_the_cache_is_written_again(shop, fresh, damage):
    first = sqlgym.load_tasks(shop, "all", synthesis=FEW)
    (kept,) = (fresh / "sql" / "synthesized").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    sqlgym.datasets.load._load_bare.cache_clear()

    assert sqlgym.load_tasks(shop, "all", synthesis=FEW).ids == first.ids
    assert kept.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_done_without(shop, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("a file stands where the folder should be")
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "file"))
    sqlgym.datasets.load._load_bare.cache_clear()

    assert len(sqlgym.load_tasks(shop, "all", synthesis=FEW)) == FEW["n"]


def test_a_folder_of_files_is_one_set_with_a_name_for_each(tmp_path):
    for place in ("one.db", "two.sqlite", "deep/down/three.sqlite3", "a/twin.db", "b/twin.db"):
        make_database(tmp_path / place, seed=place)
    (tmp_path / "readme.txt").write_text("Not a database.")
    (tmp_path / "empty.db").write_text("")
    tasks = sqlgym.load_tasks(tmp_path, "all", synthesis={"n": 4})

    assert {task.item for task in tasks} == {"one", "two", "three", "a_twin", "b_twin"}
    places = {task.item: task.database for task in tasks}
    assert places["a_twin"] == tmp_path.resolve() / "a" / "twin.db"


def test_a_database_of_which_nothing_can_be_asked_is_refused_and_the_others_play(tmp_path):
    make_database(tmp_path / "shop.db")
    connection = sqlite3.connect(tmp_path / "void.db")
    connection.execute("CREATE TABLE hollow (a, b)")
    connection.close()
    (tmp_path / "hurt.db").write_bytes(b"SQLite format 3\0" + b"?" * 500)
    tasks = sqlgym.load_tasks(tmp_path, "all", synthesis=FEW)

    assert {name: refusal.code for name, refusal in tasks.refused.items()} == {
        "hurt": "not_a_database",
        "void": "no_tasks",
    }
    assert "hollow: It is empty" in tasks.refused["void"].reason
    assert {task.item for task in tasks} == {"shop"}
    with pytest.raises(ConfigurationError, match=r"has no tasks for split 'train': no question is"):
        sqlgym.load_tasks(tmp_path / "void.db", "train")


def test_a_table_that_is_not_there_is_told_with_the_nearest(shop):
    with pytest.raises(ConfigurationError, match=r"There is no table 'artikle'.*article"):
        sqlgym.load_tasks(shop, "train", synthesis={"tables": ["artikle"]})


def test_options_reach_the_synthesis(shop):
    tasks = sqlgym.load_tasks(shop, "all", synthesis={"n": 15, "tables": ["article"]})

    assert len(tasks) == 15
    assert not any("shop" in task.gold_sql.replace("shop_id", "") for task in tasks)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"n": 0},
            r"n must be at least 1\. The options are n, seed, hardness",
        ),
        ({"m": 3}, "m: unknown setting"),
        ({"hardness": {"brutal": 1}}, "hardness.brutal"),
        (7, "invalid synthesis options"),
    ],
)
def test_options_that_are_none_are_refused(shop, options, words):
    with pytest.raises(ConfigurationError, match=words):
        sqlgym.load_tasks(shop, "train", synthesis=options)


@pytest.mark.parametrize(
    ("dataset", "more", "words"),
    [
        ("bundled", {"synthesis": FEW}, "synthesis= is only valid for a database file"),
        ("SHOP", {"databases": "."}, "has no questions, so databases= must not be given"),
        ("SHOP", {"split": "exam"}, "has no split 'exam': it has 'train', 'dev', 'test', 'all'"),
    ],
)
def test_what_does_not_go_together_is_told(shop, dataset, more, words):
    options = {"split": "dev"} | more
    with pytest.raises(ConfigurationError, match=words):
        sqlgym.load_tasks(str(shop) if dataset == "SHOP" else dataset, **options)


def load_each(shop, options):
    for split in ("train", "dev", "test"):
        sqlgym.load_tasks(shop, split, synthesis=options)


def test_a_split_that_stays_empty_says_what_to_do(shop):
    words = r"none of its 1 tasks belongs to '\w+'; take another split, 'all' for all tasks, or"
    with pytest.raises(ConfigurationError, match=words):
        load_each(shop, {"n": 1})


def test_a_folder_with_questions_is_never_taken_for_bare_files(tmp_path):
    make_database(tmp_path / "database" / "shop" / "shop.sqlite")
    assert synthesized.bare_databases(tmp_path)
    for place in ("notes.json", "part/dev.jsonl"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("[]")
        assert synthesized.bare_databases(tmp_path) == ()
        (tmp_path / place).unlink()


def test_whoever_listens_hears_how_far_the_writing_is_and_nothing_is_printed(shop, fresh, capfd):
    heard = []
    with progress_listener(lambda *told: heard.append(told)):
        sqlgym.load_tasks(shop, "all", synthesis=FEW)
    assert {what for what, _, _ in heard} == {"writing tasks for shop"}
    assert heard[-1][1:] == (6, 6)
    sqlgym.datasets.load._load_bare.cache_clear()
    heard.clear()
    with progress_listener(lambda *told: heard.append(told)):
        sqlgym.load_tasks(shop, "all", synthesis=FEW)
    assert heard == []
    assert capfd.readouterr() == ("", "")
