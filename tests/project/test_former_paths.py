"""Import paths that the pages of version 0.1.0 named go on to work, and say where things are."""

import ast
import importlib
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = [
    ("adapters.lab.micro_loop", "MicroConfig", "adapters.lab.micro.loop"),
    ("adapters.lab.micro_loop", "mean", "adapters.lab.micro.loop"),
    ("adapters.lab.micro_loop", "train", "adapters.lab.micro.loop"),
    ("adapters.training.audit", "audit", "adapters.training.runs.audit"),
    ("adapters.training.demonstrations", "demonstrate", "adapters.training.models.demonstrations"),
    ("adapters.training.evaluations", "evaluations", "adapters.training.runs.evaluations"),
    ("adapters.training.evaluations", "separated", "adapters.training.runs.evaluations"),
    ("adapters.training.guards", "Guards", "adapters.training.guards.guards"),
    ("adapters.training.outcomes", "group_size", "adapters.training.algorithms.groups"),
    ("adapters.training.preflight", "Scope", "adapters.training.preflight.run"),
    ("adapters.training.preflight", "preflight", "adapters.training.preflight.run"),
    ("adapters.training.reporting", "reported", "toolgym.runs.dashboards"),
    ("adapters.training.settings", "resolve", "adapters.training.runs.settings"),
    ("adapters.training.watch", "Silent", "adapters.training.runs.progress"),
    ("aflowgym.operators", "OPERATORS", "aflowgym.operators.catalogue"),
    ("aflowgym.operators", "Operator", "aflowgym.operators.catalogue"),
    ("aflowgym.pictures", "workflow_picture", "aflowgym.statistics.workflow_svg"),
    ("aflowgym.protocols", "Job", "aflowgym.execution.protocols"),
    ("aflowgym.statistics", "workflow_statistics", "aflowgym.statistics.tables"),
    ("sqlgym.bundled", "dataset_folder", "sqlgym.datasets.bundled"),
    ("sqlgym.database", "open_database", "sqlgym.database.database"),
    ("sqlgym.limits", "Limits", "sqlgym.database.limits"),
    ("sqlgym.render", "render", "sqlgym.database.render"),
    ("sqlgym.synthesis.world", "Role", "sqlgym.synthesis.reading.world"),
    ("sqlgym.task_family", "SqlTaskFamily", "sqlgym.datasets.family"),
    ("sqlgym.tasks", "load_tasks", "sqlgym.datasets.load"),
    ("toolgym.chat", "ChatPolicy", "toolgym.policies.chat"),
    ("toolgym.chat.scripted_server", "ScriptedServer", "toolgym.testing.chat_server"),
    ("toolgym.runs", "Run", "toolgym.runs.run"),
    ("toolgym.task_report", "check_tasks", "toolgym.inspection"),
    ("toolgym.testing", "check_tool_env", "toolgym.testing.contract"),
]
"""What pages imported: the module then, the name, and the module now."""
NEED_TORCH = ("adapters.",)


def fresh(name: str) -> object:
    """A module as it is when it is imported for the first time."""
    if not (ROOT / name.replace(".", "/")).is_dir():
        sys.modules.pop(name, None)
    return importlib.import_module(name)


@pytest.mark.parametrize(("then", "name", "now"), NAMED)
def test_what_the_pages_imported_is_there_still(then, name, now):
    if then.startswith(NEED_TORCH):
        pytest.importorskip("torch", reason="needs the extra `train`")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = getattr(fresh(then), name)

    assert found is getattr(importlib.import_module(now), name)
    moved = [str(each.message) for each in caught if then in str(each.message)]
    is_room = (ROOT / then.replace(".", "/")).is_dir()
    assert moved == ([] if is_room else [f"{then} has moved: import from {now}."])


def test_a_former_path_has_the_names_of_today_and_no_others():
    with pytest.warns(DeprecationWarning, match=r"sqlgym\.limits has moved: import from sqlgym\.d"):
        former = fresh("sqlgym.limits")

    assert dir(former) == dir(importlib.import_module("sqlgym.database.limits"))
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        former.nothing_of_that_name  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'gone'"):
        importlib.import_module("sqlgym.tasks").gone  # noqa: B018


def test_nothing_here_imports_a_former_path():
    former = {then for then, _, _ in NAMED if not (ROOT / then.replace(".", "/")).is_dir()}
    folders = ("toolgym", "sqlgym", "aflowgym", "adapters", "tests", "examples", "benchmarks")
    for file in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.module not in former, file
            elif isinstance(node, ast.Import):
                assert not former & {alias.name for alias in node.names}, file
