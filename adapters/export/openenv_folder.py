"""The folder of an environment as OpenEnv packs one, for `openenv validate`, `build`, `push`.

    openenv.yaml           what it is, and what its rewards are
    README.md              with the header that a Space of Hugging Face reads
    pyproject.toml         the distribution openenv-toolgym, with the script `server`
    client.py  models.py   for trainers; they need the package openenv and nothing of ours
    server/app.py          the server: environment and arguments are fixed here
    server/Dockerfile
    wheels/                packages that no index has, if any were given

The client and its models are the files of `adapters.openenv`, so both sides agree.
"""

from __future__ import annotations

import json
import pprint
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import adapters.openenv
from adapters.export.folder import put_in_place
from toolgym import registration
from toolgym.errors import ConfigurationError
from toolgym.registration import dataset_of

PACKAGE: Final = "toolgym_env"
PORT: Final = 8000
MARK: Final = "# Written by `toolgym export openenv`.\n"
"""The beginning of `openenv.yaml`, by which such a folder is known."""
_OURS: Final = "from adapters.openenv.models import"
_MANIFEST: Final = f"""{MARK}spec_version: 1
name: {PACKAGE}
version: {{version}}
type: space
runtime: fastapi
app: server.app:app
port: {PORT}
validation:
  reward:
    range: [{{lowest}}, {{highest}}]
    oracle_tolerance: 0.0
    floor_margin: 0.1
  resources:
    cpu: 1.0
    memory_mb: 2048
    disk_mb: 2048
    episode_timeout_s: 600.0
  capabilities:
    verifier:
      kind: reward_channel
    task_api: true
    declared_tools: {{tools}}
  types:
    tags: [tool-use]
"""
_PROJECT: Final = f"""[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "openenv-toolgym"
version = "{{version}}"
description = "{{env_id}} of toolgym as an OpenEnv environment."
requires-python = ">=3.11"
dependencies = ["openenv>=0.10,<0.11", "toolgym[openenv]=={{version}}"]

[project.scripts]
server = "{PACKAGE}.server.app:main"

[tool.setuptools]
packages = ["{PACKAGE}", "{PACKAGE}.server"]
package-dir = {{{{ "{PACKAGE}" = ".", "{PACKAGE}.server" = "server" }}}}
"""
_INIT: Final = '''"""{env_id} as an OpenEnv environment: its client, and what goes over the wire."""

from .client import ToolgymEnv
from .models import ToolgymAction, ToolgymObservation, ToolgymState

__all__ = ["ToolgymAction", "ToolgymEnv", "ToolgymObservation", "ToolgymState"]
'''
_APP: Final = '''"""The server of {env_id}: `server --host 0.0.0.0 --port {port}`.

A client chooses a task; everything else is fixed below. Requests are refused whose Host is neither
localhost, nor that of a Space of Hugging Face, nor listed in TOOLGYM_HOSTS (with commas).
"""

import argparse

from adapters.openenv.server import exported_application, run

app = exported_application(
    {env_id!r},
    {env_kwargs},
    max_sessions={max_sessions},
    idle={idle},
)


def main() -> None:
    """Serve until the process is told to end."""
    options = argparse.ArgumentParser(description="Serve {env_id} by OpenEnv.")
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, default={port})
    given = options.parse_args()
    run(app, given.host, given.port)


if __name__ == "__main__":
    main()
'''
_DOCKERFILE: Final = f"""# In the folder above: docker build -f server/Dockerfile -t toolgym-env .
FROM python:3.11-slim

# A Space runs as this user.
RUN useradd --create-home --uid 1000 user
WORKDIR /app/env
COPY . /app/env
RUN pip install --no-cache-dir {{wheels}}/app/env
USER user

EXPOSE {PORT}
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \\
    CMD python -c "from urllib.request import urlopen as o; o('http://127.0.0.1:{PORT}/health')"
CMD ["server", "--host", "0.0.0.0", "--port", "{PORT}"]
"""
_README: Final = f"""---
title: {{env_id}}
sdk: docker
app_port: {PORT}
pinned: false
tags:
  - openenv
  - toolgym
---

# {{env_id}} for OpenEnv

{{purpose}} The model answers by calls of {{tools}}.

    from {PACKAGE} import ToolgymAction, ToolgymEnv

    with ToolgymEnv(base_url="http://localhost:{PORT}").sync() as client:
        result = client.reset(split="{{split}}", index=0)
        print(result.observation.text)
        result = client.step(ToolgymAction(text="..."))
        print(result.observation.text, result.reward, result.done)

An action is the whole message of the model. Rewards add up to the score;
`ToolgymAction(finish=True)` closes an episode and pays what is left of it. After a fault of the
machine `scored` is false and there is no reward: leave the episode out.

Run it: `docker build -f server/Dockerfile -t toolgym-env .`, then
`docker run -p {PORT}:{PORT} toolgym-env`; or without a container, `pip install .` and `server`.
Requests must name localhost, or the address of the Space, as Host; `TOOLGYM_HOSTS=name,name` adds
others.
"""


@dataclass(frozen=True)
class Packed:
    """What an exported folder serves.

    Attributes:
        env_id: The environment.
        env_kwargs: Its arguments, as JSON can hold them.
        max_sessions: Sessions that may be open at once.
        idle: Seconds after which a silent session is closed.
        wheels: Files to install from, for what no index has.
    """

    env_id: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    max_sessions: int = 64
    idle: float = 900.0
    wheels: tuple[Path, ...] = ()

    def check(self) -> None:
        """Refuse what would not work elsewhere.

        Raises:
            ConfigurationError: The data set or a wheel is not there, or lies on this machine only.
        """
        dataset = dataset_of(self.env_id, self.env_kwargs)
        if isinstance(dataset, str | Path) and Path(dataset).expanduser().exists():
            raise ConfigurationError(
                f"the data set {dataset} lies on this machine, and a container has those that come"
                " with toolgym only: name one of them, or write a Dockerfile that copies it."
            )
        for wheel in self.wheels:
            if wheel.suffix != ".whl" or not wheel.is_file():
                raise ConfigurationError(f"--wheel {wheel} is no file of that kind.")


def check_place(out: Path, overwrite: bool) -> None:
    """Refuse a place that is taken.

    Raises:
        ConfigurationError: It is no folder, or one with something in it, and `overwrite` is not set
            or no such export wrote it.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ConfigurationError(f"{out} is not a folder: name another place.")
    if not out.is_dir() or not any(out.iterdir()):
        return
    manifest = out / "openenv.yaml"
    if not (manifest.is_file() and manifest.read_text("utf-8", "replace").startswith(MARK)):
        raise ConfigurationError(f"{out} holds what no such export wrote: name another folder.")
    if not overwrite:
        raise ConfigurationError(
            f"{out} is not empty: name another folder, or add --overwrite to replace what an"
            " earlier export wrote there."
        )


def write_folder(packed: Packed, out: Path, *, overwrite: bool = False) -> list[str]:
    """Write the folder; the names of its files, in order.

    Raises:
        ConfigurationError: The place is taken, or what is packed would not work elsewhere.
        EnvironmentFault: It cannot be written.
    """
    check_place(out, overwrite)
    packed.check()
    texts = folder_texts(packed)
    with put_in_place(out) as built:
        for name, text in texts.items():
            (built / name).parent.mkdir(parents=True, exist_ok=True)
            (built / name).write_text(text, encoding="utf-8")
        for wheel in packed.wheels:
            (built / "wheels").mkdir(exist_ok=True)
            shutil.copyfile(wheel, built / "wheels" / wheel.name)
    return [*texts, *(f"wheels/{wheel.name}" for wheel in packed.wheels)]


def folder_texts(packed: Packed) -> dict[str, str]:
    """The text of each file."""
    env = registration.make(packed.env_id, **packed.env_kwargs)
    lowest, highest = env.reward_config.bounds
    facts = {
        "env_id": packed.env_id,
        "version": version("toolgym"),
        "lowest": round(lowest, 6),
        "highest": highest,
        "tools": json.dumps(list(env.tools)),
        "port": PORT,
    }
    app = {
        "env_kwargs": pprint.pformat(dict(packed.env_kwargs), width=90),
        "max_sessions": packed.max_sessions,
        "idle": packed.idle,
    }
    purpose = " ".join((type(env).__doc__ or "").strip().split("\n\n")[0].split())
    told = {"purpose": purpose, "split": packed.env_kwargs.get("split", "train")}
    names = ", ".join(f"`{name}`" for name in env.tools)
    ours = Path(adapters.openenv.__file__).parent
    client = (ours / "client.py").read_text("utf-8").replace(_OURS, "from .models import")
    install = "--find-links /app/env/wheels " if packed.wheels else ""
    return {
        "openenv.yaml": _MANIFEST.format(**facts),
        "README.md": _README.format(**{**facts, **told, "tools": names}),
        "pyproject.toml": _PROJECT.format(**facts),
        "__init__.py": _INIT.format(**facts),
        "models.py": (ours / "models.py").read_text("utf-8"),
        "client.py": client,
        "server/__init__.py": f'"""The server of {packed.env_id}."""\n',
        "server/app.py": _APP.format(**facts, **app),
        "server/Dockerfile": _DOCKERFILE.format(wheels=install),
    }
