"""The pages of the Python API on the documentation site.

A page documents the names in `__all__` of a package, or the names that are listed here. It contains
directives for mkdocstrings, which reads the sources without importing them, so torch and trl need
not be installed.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES: dict[str, tuple[str, ...]] = {
    "toolgym": ("toolgym",),
    "toolgym.policies": ("toolgym.policies",),
    "toolgym.records": (
        "toolgym.records.EpisodeRecord",
        "toolgym.records.Evaluation",
        "toolgym.rollout.play",
        "toolgym.rollout.evaluate",
        "toolgym.tries.Try",
    ),
    "toolgym.runs": (
        "toolgym.runs.Run",
        "toolgym.runs.episodes.read_episodes",
        "toolgym.runs.paired.paired",
        "toolgym.runs.paired.Paired",
    ),
    "toolgym.chat": ("toolgym.chat", "toolgym.policies.chat.ChatPolicy"),
    "toolgym.generation": ("toolgym.generation",),
    "toolgym.testing": ("toolgym.testing.check_tool_env", "toolgym.testing.ContractBroken"),
    "sqlgym": ("sqlgym", "sqlgym.envs.explore.ExploreEnv", "sqlgym.envs.text_to_sql.TextToSQLEnv"),
    "sqlgym.synthesis": ("sqlgym.synthesis",),
    "aflowgym": (
        "aflowgym",
        "aflowgym.envs.compose.ComposeEnv",
        "aflowgym.envs.operate.OperateEnv",
    ),
    "aflowgym.backends": (
        "aflowgym.backends",
        "aflowgym.backends.transformers.TransformersBackend",
    ),
    "aflowgym.sandbox": ("aflowgym.sandbox",),
    "aflowgym.statistics": ("aflowgym.statistics",),
    "adapters.trl": ("adapters.trl",),
    "adapters.reference": (
        "adapters.reference.train.ReferenceTrainer",
        "adapters.training.settings.GrpoSettings",
        "adapters.training.settings.TrainSettings",
        "adapters.reference.losses.policy_loss",
        "adapters.training.algorithms.advantages.advantages",
    ),
    "adapters.training.guards": (
        "adapters.training.guards",
        "adapters.training.guards.guards.Decision",
        "adapters.training.guards.config.GuardConfig",
        "adapters.training.guards.config.Action",
        "adapters.training.guards.fault_limit.TrainingStopped",
    ),
    "adapters.reference.preflight": (
        "adapters.reference.preflight.preflight",
        "adapters.reference.preflight.Report",
        "adapters.reference.preflight.Finding",
    ),
    "adapters.training.runs": (
        "adapters.training.settings.TrainSettings",
        "adapters.training.settings.resolve",
    ),
}
"""The contents of each page: packages with `__all__`, or single objects."""


def api_pages() -> dict[str, str]:
    """Return the text of each page of the API reference, by its path.

    Raises:
        RuntimeError: A package has no `__all__`.
    """
    return {f"api/{name}.md": _page(name, entries) for name, entries in PAGES.items()}


def documented(entries: tuple[str, ...]) -> list[str]:
    """Return the dotted names of the objects on a page, in order.

    Raises:
        RuntimeError: A package has no `__all__`.
    """
    names: list[str] = []
    for entry in entries:
        listed = public_names(entry) if _source(entry) else None
        names += [entry] if listed is None else [f"{entry}.{name}" for name in listed]
    return names


def public_names(package: str) -> list[str]:
    """Return the names in `__all__` of a package, or those that it re-exports.

    Raises:
        RuntimeError: It has neither.
    """
    source = _source(package)
    tree = ast.parse(source.read_text(encoding="utf-8") if source else "")
    for node in tree.body:
        if isinstance(node, ast.Assign) and "__all__" in [
            target.id for target in node.targets if isinstance(target, ast.Name)
        ]:
            return [str(name) for name in ast.literal_eval(node.value)]
    imports = [
        name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names
    ]
    names = sorted(each.name for each in imports if each.asname == each.name != "__version__")
    if not names:
        raise RuntimeError(f"{package} has no __all__: list the documented names in PAGES.")
    return names


def _source(name: str) -> Path | None:
    """Return the file of a package; None if the name is that of an object."""
    file = ROOT.joinpath(*name.split("."), "__init__.py")
    return file if file.is_file() else None


def _page(name: str, entries: tuple[str, ...]) -> str:
    parts = [f"# {name}"]
    if _source(name):
        # The docstring of the package, without a heading.
        options = ("members: false", "show_root_heading: false", "show_root_toc_entry: false")
        parts.append(_directive(name, options))
    return "\n\n".join([*parts, *(_directive(each) for each in documented(entries))]) + "\n"


def _directive(name: str, options: tuple[str, ...] = ()) -> str:
    lines = [f"::: {name}"]
    if options:
        lines += ["    options:", *(f"      {option}" for option in options)]
    return "\n".join(lines)
