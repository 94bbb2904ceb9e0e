"""Write the pages of the documentation that are generated from the program.

* `docs/cli.md`: `tools/cli_intro.md`, the help of all commands, and the keys of `--json`.
* `docs/reference.md`: the tables of `tools/make_reference.py`.
* `docs/call-formats.md`: the table of call formats (`tools/make_formats.py`).
* `docs/architecture.md`: the diagrams and tables of packages (`tools/make_architecture.py`). The
  rest of this page is written by hand.

Tests compare the pages with the program. Run this after a change of a command, a table or an
import, and commit the pages:

    python tools/make_docs.py
"""

import re
import sys
from pathlib import Path

from typer import Typer
from typer.testing import CliRunner

from toolgym.cli import application
from toolgym.plugins import COMMANDS, find_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.make_architecture import architecture_page
from tools.make_formats import formats_page
from tools.make_reference import reference_page

# The same row in every command, and its section if it has no other row.
_HELP_ROW = re.compile(r"(\n\nOptions:)?\n  -h, --help +Show this message and exit\.$", re.M)
ROOT = Path(__file__).resolve().parent.parent
WIDTH = 96
INTRO = Path(__file__).with_name("cli_intro.md").read_text(encoding="utf-8")
_EVALUATION = "episodes unscored accuracy interval mean_score validity answered faults"
_TASKS = "name tasks splits items playable refused codes faults duplicates rows"
_EXPORT = "out format facts rows columns left_out"
JSON_KEYS = {
    "audit": "rollouts sampled right decided undecided agreement interval disagreements"
    " data_changed",
    "compare": "first second comparisons",
    "doctor": "ok python sqlite base extras plugins cache problems",
    "envs": "id description tools terminal defaults rewards law",
    "envs ENV_ID": "id description tools terminal defaults rewards law",
    "eval": f"env_id policy dataset k seed {_EVALUATION} refused (split) (pass_at_k)"
    " (pass_at_k_intervals) (usage) (env_usage) (transcripts)",
    "export rows": _EXPORT,
    "export demonstrations": _EXPORT,
    "export rollouts": _EXPORT,
    "export openenv": "out env_id env_kwargs files",
    "export verifiers": "out name env_id env_kwargs",
    "merge": f"env_id merged k {_EVALUATION} (policy) (dataset) (split) (pass_at_k)"
    " (pass_at_k_intervals) (transcripts)",
    "models list": "name requirement sha256 file origin parameters context license differs"
    " single_digits folder",
    "preflight": "verdict findings figures env_id model env_kwargs (chat_template)",
    "stats": "run env_id rollouts (validity) (errors) (patterns) (operators) (structures)"
    " (collapse) (time)",
    "tasks check": _TASKS,
    "tasks stats": _TASKS,
    "tasks show": "id split question refused (database) (hardness) (evidence) (gold SQL) (tables)"
    " (result)",
    "tasks invent": "out databases",
    "tasks synth": "out splits dropped sources refused",
    "tasks rephrase": "out questions rephrased refused unusable",
    "train": "run env_id model trainer control status seconds evaluations before after gain"
    " (selection) (kept) (diagnosis)",
    "train --show-settings": "value from",
}
"""The keys that each command prints with `--json`; keys in parentheses may be absent.

A test compares them with the commands. `envs` and `models list` print a list of such objects.
`eval` also prints each option that was given. `train --show-settings` prints such an object for
each setting, by its name. "gold SQL" is one key.
"""
_NOTES = {
    "envs": ", in a list",
    "models list": ", in a list",
    "eval": ", and each option that was given",
    "tasks check": "; `rows` is empty",
    "train --show-settings": ", for each setting by its name",
}


def our_commands() -> list[str]:
    """Return the names of the commands of this project, without those of other packages."""
    found = find_plugins(COMMANDS)
    return [name for name, plugin in found.items() if plugin.origin.startswith("toolgym ")]


def help_of(*arguments: str) -> str:
    """Return what `toolgym ARGUMENTS --help` prints; for a group, also the help of its commands.

    Raises:
        RuntimeError: The command failed.
    """
    app = application()
    pages = [_printed(app, *arguments)]
    if len(arguments) == 1:
        loaded = find_plugins(COMMANDS)[arguments[0]].load()
        inside = loaded.registered_commands if isinstance(loaded, Typer) else ()
        pages += [_printed(app, *arguments, command.name or "") for command in inside]
    return "\n\n".join(pages)


def _printed(app: Typer, *arguments: str) -> str:
    options = {"prog_name": "toolgym", "terminal_width": WIDTH}
    shown = CliRunner().invoke(app, [*arguments, "--help"], **options)
    if shown.exit_code != 0:
        raise RuntimeError(f"toolgym {' '.join(arguments)} --help failed: {shown.output}")
    return "\n".join(line.rstrip() for line in shown.stdout.strip().splitlines())


def cli_page() -> str:
    """Return the text of `docs/cli.md`."""
    sections = [INTRO, f"## toolgym\n\n```text\n{help_of()}\n```\n"]
    for name in our_commands():
        text = _HELP_ROW.sub("", help_of(name))
        sections.append(f"## toolgym {name}\n\n```text\n{text}\n```\n{_json_keys(name)}")
    return "\n".join(sections)


def _json_keys(name: str) -> str:
    """Return a list with the `--json` keys of a command and of its subcommands."""
    named: dict[str, list[str]] = {}
    for words, keys in JSON_KEYS.items():
        if words.split()[0] == name:
            text = ", ".join(_key(key) for key in split_keys(keys)) + _NOTES.get(words, "")
            named.setdefault(text, []).append(f"`toolgym {words} --json`")
    lines = [f"* {', '.join(uses)}: {text}" for text, uses in named.items()]
    return "\n".join(["\nJSON keys:\n", *lines, ""]) if lines else ""


def split_keys(keys: str) -> list[str]:
    """Split a value of `JSON_KEYS` into its keys.

    >>> split_keys("id (gold SQL) (tables)")
    ['id', '(gold SQL)', '(tables)']
    """
    return re.findall(r"\([^)]+\)|\S+", keys)


def _key(key: str) -> str:
    return f"(`{key[1:-1]}`)" if key.startswith("(") else f"`{key}`"


PAGES = {
    "docs/architecture.md": architecture_page,
    "docs/call-formats.md": formats_page,
    "docs/cli.md": cli_page,
    "docs/reference.md": reference_page,
}


def main(root: Path = ROOT) -> int:
    """Write every generated page and return the exit status."""
    for name, made in PAGES.items():
        page = root / name
        page.parent.mkdir(exist_ok=True)
        text = made()  # may read the page, so it is called first
        page.write_text(text, encoding="utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
