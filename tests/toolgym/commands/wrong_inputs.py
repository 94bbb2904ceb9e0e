"""Wrong uses of every command, each with words of what is said."""

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from tests.toolgym.commands.command_line import run_here

CASES = {
    "mcp": "missing argument 'ENV_ID'. Environments: aflowgym/Compose-v0",
    "mcp sqlgym/Explore-v0 --task-id nowhere": "there is no task 'nowhere' in bundled",
    "mcp sqlgym/Explore-v0 --task-id a --seed 1": "--task-id and --seed both choose the task",
    "mcp sqlgym/Explore-v0 --http 0 --seed 1": "with --http a client chooses it; gi",
    "mcp sqlgym/Explore-v0 --http 65536": "invalid value for '--http'",
    "mcp sqlgym/Explore-v0 --http 0 --max-episodes 0": "invalid value for '--max-episodes'",
    "mcp sqlgym/Explore-v0 --set parsing=loose": 'parsing must be "lenient" or "strict", got',
    "envs nosuch/Env-v0": "there is no environment 'nosuch/Env-v0'.",
    "envs CartPole-v1": "'CartPole-v1' has no tools: it is not a",
    "envs sqlgym/Explore-v0 extra": "got unexpected extra argument(s) (extra)",
    "eval": "name an environment, such as sqlgym/Explore-v0 (`toolgym envs`",
    "eval sqlgym/Exlore-v0": "there is no environment 'sqlgym/Exlore-v0'.",
    "eval sqlgym/Explore-v0 --chat-template hermes": "expert does not accept model options: remo",
    "eval sqlgym/Explore-v0 --policy openai:m --chat-template hermes": "chat_template: unknown set",
    "eval sqlgym/Explore-v0 --policy a/b --chat-template nowhere": "there is no chat template 'now",
    "eval sqlgym/Explore-v0 --policy a/b --chat-template text.txt": "text.txt does not show the me",
    "eval sqlgym/Explore-v0 --n 0": "invalid value for '--n' / '-n': must be at least",
    "eval sqlgym/Explore-v0 --k 0": "invalid value for '--k': must be at least",
    "eval sqlgym/Explore-v0 --policy expret": "there is no policy 'expret'; did you mean",
    "eval sqlgym/Explore-v0 --policy ./nowhere": "There is no model folder ./nowhere. Pass",
    "eval sqlgym/Explore-v0 --policy nowhere": "there is no policy 'nowhere'. For a model on",
    "eval sqlgym/Explore-v0 --policy openai:": "name the model, as in openai:gpt-4o-mini.",
    "eval sqlgym/Explore-v0 --policy openai:m --base-url nourl": "'nourl' is not a base URL",
    "eval sqlgym/Explore-v0 --policy openai:m --policy-set maxtokens=3": "maxtokens: unknown set",
    "eval sqlgym/Explore-v0 --policy model --policy-set max_tokens=120": "a model has no option",
    "eval sqlgym/Explore-v0 --policy model --policy-set max_new_tokens=many": "max_new_tokens",
    "eval sqlgym/Explore-v0 --policy model --temperature -1": "invalid value for",
    "eval sqlgym/Explore-v0 --dataset nowhere": "there is no data set 'nowhere': it is neither",
    "eval sqlgym/Explore-v0 --dataset empty": "has no questions: it needs a dev.json or",
    "eval sqlgym/Explore-v0 --dataset empty.db": "is not an SQLite database.",
    "eval sqlgym/Explore-v0 --dataset corrupt.db": "cannot be read: file is not a database.",
    "eval sqlgym/Explore-v0 --dataset text.txt": "text.txt: single files must be .jsonl or",
    "eval sqlgym/Explore-v0 --split exam": "bundled has no split 'exam': it has 'train', 'dev',",
    "eval sqlgym/Explore-v0 --step-limit 0": "step_limit must be an integer of at least 2",
    "eval sqlgym/Explore-v0 --set parsing=loose": 'parsing must be "lenient" or "strict", got',
    "eval sqlgym/Explore-v0 --set nothing=1": "sqlgym/Explore-v0 has no argument 'nothing'. Its",
    "eval sqlgym/Explore-v0 --set novalue": "--set takes NAME=VALUE, as in --set step_limit=20",
    "eval sqlgym/Explore-v0 --set parsing=strict --parsing strict": "parsing is given twice, al",
    "eval sqlgym/Explore-v0 --shard 3/2": "there is no shard 3/2: the shards are 1/2",
    "eval sqlgym/Explore-v0 --shard x": "--shard must be I/N, such as 1/2",
    "eval sqlgym/Explore-v0 --out gone/x.jsonl": "--out gone/x.jsonl: the folder gone does not exi",
    "eval sqlgym/Explore-v0 --out text.txt": "--out text.txt is an existing file; choose",
    "merge nowhere.jsonl": "There is no run folder nowhere.jsonl",
    "merge text.txt": "Line 1 of text.txt is damaged: Expecting value",
    "merge other.jsonl": "Line 1 of other.jsonl is damaged: not an episode",
    "merge": "missing argument 'PART'.",
    "compare nowhere nowhere": "There is no run folder nowhere. Run folders",
    "play": "missing argument 'ENV_ID'. Environments: aflowgym/Compose-v0",
    "play sqlgym/Explore-v0 --task-id a --seed 1": "--task-id and --seed both choose the task",
    "play sqlgym/Explore-v0 --task-id nowhere": "there is no task 'nowhere' in bundled (train)",
    "report": "missing argument 'RUN'.",
    "report nowhere": "There is no run folder nowhere. Run folders",
    "report empty": "empty is not a run folder: config.json is missing. Run",
    "report text.txt": "text.txt is a file, not a run folder",
    "serve": "missing argument 'ENV_ID'. Environments: aflowgym/Compose-v0",
    "serve sqlgym/Explore-v0 --port 65536": "invalid value for '--port'",
    "serve sqlgym/Explore-v0 --host 0.0.0.0": "listens on all addresses and needs --allow-host",
    "stats nowhere": "There is no run folder nowhere. Run folders",
    "stats text.txt": "text.txt contains neither episodes of `toolgym eval --out` nor",
    "stats damaged": "there is no environment ''.",
    "stats run --phase never": "there is no phase 'never'; a run has before",
    "audit nowhere": "There is no run folder nowhere. Run folders",
    "audit text.txt": "text.txt is a file, not a run folder",
    "audit run --n 0": "invalid value for '--n' / '-n': must be at least",
    "audit run --phase never": "there is no phase 'never' to audit; choose",
    "export openenv": "missing argument 'DIR'.",
    "export openenv text.txt": "text.txt is not an empty folder. Choose another one.",
    "export openenv run": "run is not an empty folder. Choose another one.",
    "export openenv made --dataset empty": "the data set empty is on this machine, but a",
    "export rows sqlgym/Explore-v0": "missing option '--out'.",
    "export rows sqlgym/Explore-v0 --out made --for ray": "'ray' is not one of 'trl', 'verl',",
    "export rows sqlgym/Explore-v0 --out made --format csv": "'csv' is not one of 'parquet',",
    "export rows sqlgym/Explore-v0 --out text.txt": "text.txt is not an empty folder. Choose",
    "export rows sqlgym/Explore-v0 --out run": "run is not an empty folder. Choose another one.",
    "export demonstrations sqlgym/Explore-v0 --out made --n 0": "invalid value for '--n' / '-n'",
    "export demonstrations sqlgym/Explore-v0 --out made --arguments x": "'x' is not one of",
    "export rollouts text.txt --out made": "Line 1 of text.txt is damaged: Expecting value: line",
    "export rollouts other.jsonl --out made": "Line 1 of other.jsonl is damaged: not an episode",
    "export rollouts damaged --out made": "Line 2 of damaged/rollouts.jsonl is damaged",
    "export verifiers sqlgym/Explore-v0 --out run": "run is not an empty folder",
    "export verifiers sqlgym/Explore-v0 --out made --name A": "--name A is not a package name",
    "tasks check empty": "has no questions: it needs a train.json or train.jsonl",
    "tasks check bundled --split exam": "bundled has no split 'exam': it has 'train', 'dev',",
    "tasks stats nowhere": "there is no data set 'nowhere': it is neither",
    "tasks stats corrupt.db": "cannot be read: file is not a database. Restore",
    "tasks show bundled nowhere": "there is no task 'nowhere' in bundled (train, dev, test)",
    "tasks show nowhere some-id": "there is no data set 'nowhere': it is neither",
    "tasks synth nowhere.db --out made": "nowhere.db does not exist: use an SQLite file or",
    "tasks synth text.txt --out made": "text.txt is not an SQLite file or a folder of",
    "tasks synth corrupt.db --out made": "cannot be read: file is not a database. Restore",
    "tasks synth empty.db --out made": "is not an SQLite database.",
    "tasks synth good.db --out text.txt": "already exists: choose another folder, or add",
    "tasks synth good.db --out made --n 0": "invalid value for '--n' / '-n': must be at least",
    'tasks synth good.db --out made --set tables=["boot"]': "There is no table 'boot'",
    "tasks synth good.db --out made --splits train=1,dev=1": "must be positive and sum to 1",
    "tasks synth good.db --out made --env sqlgym/Nothing-v0": "Known environments",
    "tasks synth good.db --out made --set hardness=odd": "invalid synthesis options",
    "train": "name an environment, as in: toolgym train",
    "train sqlgym/Explore-v0 --trainer other": "--trainer must be 'trl' or",
    "train sqlgym/Explore-v0 --trainer reference --vllm server": "--vllm needs --trainer trl",
    "train sqlgym/Explore-v0 --control nothing": "--control must be 'shuffled-",
    "train sqlgym/Explore-v0 --vllm never": "--vllm must be 'colocate' or",
    "train sqlgym/Explore-v0 --steps=-1": "--steps must be at least",
    "train sqlgym/Explore-v0 --steps 0 --sft-steps 0": "there is nothing to train with --sft",
    "train sqlgym/Explore-v0 --steps x": "invalid value for '--steps': must be a valid",
    "train sqlgym/Explore-v0 --group-size 1": "group_size=1 needs advantages=batch",
    "train sqlgym/Explore-v0 --learning-rate -1": "--learning-rate must be greater",
    'train sqlgym/Explore-v0 --set rewards={"partial":2}': "rewards={'partial': 2} is refused",
    "train sqlgym/Explore-v0 --dataset corrupt.db": "cannot be read: file is not a database.",
    "train sqlgym/Explore-v0 --set parsing=loose": 'parsing must be "lenient" or "strict", got',
    "train sqlgym/Explore-v0 --model ./nowhere": "There is no model folder ./nowhere. Pass a",
    "train sqlgym/Explore-v0 --model empty": "empty is not a model folder: it needs",
    "train sqlgym/Explore-v0 --chat-template hermes": "the tiny model has its own chat templ",
    "train sqlgym/Explore-v0 --model a/b --chat-template hermse": "Use hermes or the path of a fil",
    "train sqlgym/Explore-v0 --model a/b --chat-template text.txt": "text.txt does not show the me",
    "train sqlgym/Explore-v0 --model a/b --chat-template bad.jinja": "is not a Jinja template: lin",
    "train --resume run --chat-template hermes": "--resume takes all settings from the run; leave",
    "train sqlgym/Explore-v0 --report-to paper": "--report-to must be tensorboard or trackio",
    "train sqlgym/Explore-v0 --out text.txt/run": "--out text.txt/run cannot be created",
    "train sqlgym/Explore-v0 --config nowhere.yaml": "--config nowhere.yaml cannot be read: No",
    "train sqlgym/Explore-v0 --config text.txt": "--config text.txt must contain one setting",
    "train sqlgym/Explore-v0 --guards x": "--guards must be a mapping",
    "train sqlgym/Explore-v0 --dtype bfloat16": "with --trainer trl and without --lora",
    "train sqlgym/Explore-v0 --set step_limt=3": "step_limt",
    "train --resume nowhere": "There is no run folder nowhere. Run folders",
    "train --resume run --steps 9": "--resume takes all settings from the run; leave out",
    "preflight": "missing argument 'ENV_ID'. Environments: aflowgym/Compose-v0",
    "preflight sqlgym/Explore-v0 --chat-template hermes": "the tiny model has its own chat tem",
    "preflight sqlgym/Explore-v0 --model a/b --chat-template corrupt.db": "does not show the messa",
    "preflight sqlgym/Explore-v0 --tries 1": "invalid value for '--tries': must be at least",
    "preflight sqlgym/Explore-v0 --trainer other": "--trainer must be 'trl' or",
    "models get smolm2": "unknown model 'smolm2'; choose smollm2",
    "train sqlgym/Explore-v0 --model smollm2": "smollm2 is not on this machine. Run: toolgym",
    "doctor extra": "got unexpected extra argument(s) (extra)",
    "nosuch": "no such command 'nosuch'.",
    "train --resume evaluated": "evaluated is an evaluation and cannot be resumed",
    "eval sqlgym/Explore-v0 --out text.txt/there": "--out text.txt/there cannot be created",
    "tasks synth good.db --out made --splits dev=2": "must be positive and sum to 1",
    "audit damaged": "damaged does not record its environment",
}


def prepare(place: Path) -> None:
    """Files and folders that are empty, corrupt, broken, of another kind; and one good database."""
    for name in ("empty", "folder.jsonl", "broken", "damaged", "run", "evaluated"):
        (place / name).mkdir()
    (place / "empty.db").write_bytes(b"")
    (place / "corrupt.db").write_bytes(b"SQLite format 3\0" + b"x" * 200)
    (place / "text.txt").write_text("hello\n")
    (place / "bad.jinja").write_text("{% for message in messages %}")
    (place / "broken" / "config.json").write_text("{")
    (place / "damaged" / "config.json").write_text('{"env_id": "sqlgym/Explore-v0"}')
    (place / "damaged" / "rollouts.jsonl").write_text('{"phase": "before"}\nnothing\n{}\n')
    (place / "run" / "config.json").write_text("{}")
    (place / "evaluated" / "config.json").write_text('{"kind": "evaluation"}')
    (place / "other.jsonl").write_text('{"env_id": "x"}\n')
    with sqlite3.connect(place / "good.db") as database:
        database.execute("CREATE TABLE boat (boat_id INTEGER PRIMARY KEY, name TEXT)")
        database.executemany("INSERT INTO boat VALUES (?, ?)", [(i, f"b{i}") for i in range(20)])
    database.close()


def wrong_ones(commands: Sequence[str]) -> list[tuple[str, int, str, list[str]]]:
    """The uses of these commands, in the current folder, that are not told as they should be."""
    prepare(Path())
    before, wrong = set(Path().rglob("*")), []
    for line in [line for line in CASES if line.split()[0] in commands]:
        done = run_here(*line.split(), COLUMNS="300")
        said = " ".join(done.stderr.split())
        new = sorted(map(str, set(Path().rglob("*")) - before))
        is_told = CASES[line] in said and not re.search("Traceback|failed:|━", said)
        if done.returncode != 2 or not is_told or new:
            wrong.append((line, done.returncode, done.stderr, new))
    return wrong
