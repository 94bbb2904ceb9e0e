"""What the tab key offers: environments, data sets, models, run folders, policies.

A shell asks by starting the command with `_TOOLGYM_COMPLETE` in its environment, once for each
press of the key. So what is offered is found without opening a data set and without PyTorch, and
only the command that is being completed is imported.

A completer is the `autocompletion` of an option or argument: it is given what was typed so far and
returns what could stand there. What no shell takes as one plain word, such as the name of a folder
with a blank or a dollar sign in it, is left out: the scripts of the shells do not quote, and a name
that a stranger chose must not be run.
"""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from toolgym.plugins import (
    ENVIRONMENTS,
    MODEL_NAMES,
    PluginError,
    find_plugins,
)

VARIABLE: Final = "_TOOLGYM_COMPLETE"
BUILT_IN: Final = ("expert", "random")
"""Policies that need no model."""
SPLITS: Final = ("train", "dev", "test")
"""Usual names of splits: which ones a data set has, only opening it would tell."""
_MOST: Final = 1000
"""Entries of a folder that are looked at."""
_PLAIN: Final = re.compile(r"[\w./:@+,%~=-]+")

Completer = Callable[[str], list[str]]


def is_completing(environ: Mapping[str, str]) -> bool:
    """Whether a shell asks, and not a person."""
    return VARIABLE in environ


def being_completed(environ: Mapping[str, str]) -> str | None:
    """The first word after `toolgym` on the line that is completed; None while it is typed."""
    line = _line(environ)
    words = line.split()[1:]
    is_typed = len(words) > 1 or line[-1:].isspace()
    if "COMP_WORDS" in environ:
        is_typed = environ.get("COMP_CWORD", "1") != "1"
    return words[0] if words and is_typed else None


def _line(environ: Mapping[str, str]) -> str:
    """The line that is completed, as bash and as the other shells tell it."""
    return environ.get("COMP_WORDS", environ.get("_TYPER_COMPLETE_ARGS", ""))


def offered(words: Iterable[str], incomplete: str) -> list[str]:
    """Those of the words that go on with what was typed, and that a shell takes as one word."""
    return [word for word in words if word.startswith(incomplete) and _PLAIN.fullmatch(word)]


def one_of(*words: str) -> Completer:
    """A completer of fixed words."""

    def complete(incomplete: str) -> list[str]:
        return offered(words, incomplete)

    return complete


def plugin_names(group: str) -> Completer:
    """A completer of the names of plug-ins, none of which is imported."""

    def complete(incomplete: str) -> list[str]:
        return offered(find_plugins(group), incomplete)

    return complete


def environments(incomplete: str) -> list[str]:
    """The ids of the environments that installed packages register."""
    import gymnasium as gym

    names = {module.__name__ for module in _families()}
    entries = {spec.id: str(spec.entry_point) for spec in gym.registry.values()}
    ids = (env_id for env_id, entry in entries.items() if entry.partition(".")[0] in names)
    return offered(sorted(ids), incomplete)


def data_sets(incomplete: str) -> list[str]:
    """The data sets that come with an environment, or with any, if none is named on the line."""
    families = list(_families())
    named = {word.partition("/")[0] for word in _line(os.environ).split()}
    chosen = [each for each in families if each.__name__ in named] or families
    names = (name for each in chosen for name in getattr(each, "DATA_SETS", ()))
    return offered(sorted(set(names)), incomplete)


def _families() -> Iterator[Any]:
    """The modules that register environments; importing one loads no environment."""
    for plugin in find_plugins(ENVIRONMENTS).values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield importlib.import_module(plugin.point.module)
            except Exception:  # noqa: BLE001 - a stranger's package must not stop ours
                continue


def models(incomplete: str) -> list[str]:
    """Names of models that packages here know, and the checkpoints of runs."""
    names = list[str]()
    for plugin in find_plugins(MODEL_NAMES).values():
        try:
            names += plugin.load()()
        except PluginError:
            continue
    checkpoints = (
        f"{run}/checkpoints/{name}"
        for run in _run_folders(incomplete)
        for name in _folders(Path(run).expanduser() / "checkpoints")
    )
    return offered([*names, *checkpoints], incomplete)


def policies(incomplete: str) -> list[str]:
    """What `--policy` takes: the two that need no model, one on a server, models."""
    return [*offered([*BUILT_IN, "openai:"], incomplete), *models(incomplete)]


def run_folders(incomplete: str) -> list[str]:
    """Run folders near what was typed; without any, the shell offers files."""
    return offered(_run_folders(incomplete), incomplete)


def phases(incomplete: str) -> list[str]:
    """The phases of a run."""
    from toolgym.runs.run import ALL_PHASES

    return offered(ALL_PHASES, incomplete)


def _run_folders(incomplete: str) -> Iterator[str]:
    """Folders with a run's `config.json`, in the folder that was typed and one below."""
    typed = incomplete[: incomplete.rfind("/") + 1]
    beyond = incomplete.split("/checkpoints/")[0]
    if beyond != incomplete:  # a run was typed, and a part of what is in it
        yield beyond
        return
    for name in _folders(Path(typed or ".").expanduser()):
        if not f"{typed}{name}".startswith(incomplete):
            continue
        if _is_run(Path(typed).expanduser() / name):
            yield f"{typed}{name}"
            continue
        for inside in _folders(Path(typed).expanduser() / name):
            if _is_run(Path(typed).expanduser() / name / inside):
                yield f"{typed}{name}/{inside}"


def _folders(place: Path) -> list[str]:
    """The names of the folders in a place, sorted; none where it cannot be read."""
    try:
        with os.scandir(place) as entries:
            found = [each.name for each in islice(entries, _MOST) if each.is_dir()]
    except OSError:
        return []
    return sorted(name for name in found if not name.startswith("."))


def _is_run(folder: Path) -> bool:
    return (folder / "config.json").is_file()
