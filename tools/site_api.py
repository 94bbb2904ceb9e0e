"""The pages of the documentation site that are made from docstrings.

A page tells what one package is for users, by the list `__all__` where it has one; what of other
modules is meant for users is named here. A page is Markdown with the directives of mkdocstrings,
which reads the sources and imports nothing: neither torch nor trl has to be installed.
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
"""What each page of the reference documents: packages with `__all__`, or single objects."""


def api_pages() -> dict[str, str]:
    """The text of each page of the API reference, by its path among the pages of the site.

    Raises:
        RuntimeError: A package that stands for its `__all__` has none.
    """
    return {f"api/{name}.md": _page(name, entries) for name, entries in PAGES.items()}


def documented(entries: tuple[str, ...]) -> list[str]:
    """The dotted names of what a page documents, in its order.

    Raises:
        RuntimeError: A package has no `__all__`.
    """
    names: list[str] = []
    for entry in entries:
        listed = public_names(entry) if _source(entry) else None
        names += [entry] if listed is None else [f"{entry}.{name}" for name in listed]
    return names


def public_names(package: str) -> list[str]:
    """The names in `__all__` of a package, or those that it imports as themselves.

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
        raise RuntimeError(f"{package} has no __all__: name what the page is to document in PAGES.")
    return names


def _source(name: str) -> Path | None:
    """The file of a package, and None where the name is that of an object."""
    file = ROOT.joinpath(*name.split("."), "__init__.py")
    return file if file.is_file() else None


def _page(name: str, entries: tuple[str, ...]) -> str:
    parts = [f"# {name}"]
    if _source(name):
        # What the package says of itself, without a heading of its own.
        options = ("members: false", "show_root_heading: false", "show_root_toc_entry: false")
        parts.append(_directive(name, options))
    return "\n\n".join([*parts, *(_directive(each) for each in documented(entries))]) + "\n"


def _directive(name: str, options: tuple[str, ...] = ()) -> str:
    lines = [f"::: {name}"]
    if options:
        lines += ["    options:", *(f"      {option}" for option in options)]
    return "\n".join(lines)
