"""The folder of an environment for `openenv validate`, `build` and `push`.

The folder contains the following files:

- `openenv.yaml`: the manifest, with the range of the score.

- `README.md`: a description with the header that a Hugging Face Space reads.

- `pyproject.toml`: the distribution `openenv-toolgym`, with the script `server`.

- `client.py` and `models.py`: modules for trainers, copied from `adapters.openenv`.

- `server/app.py`: the server, with the environment and its arguments.

- `server/Dockerfile`: the container of the server.
"""

from __future__ import annotations

import json
import pprint
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import adapters.openenv
from adapters.export.folder import put_in_place, write_texts
from toolgym import registration
from toolgym.errors import ConfigurationError

PACKAGE: Final = "toolgym_env"
PORT: Final = 8000
_MANIFEST: Final = f"""# Written by `toolgym export openenv`.
spec_version: 1
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
_INIT: Final = '''"""{env_id} as an OpenEnv environment: its client and its messages."""

from .client import ToolgymEnv
from .models import ToolgymAction, ToolgymObservation

__all__ = ["ToolgymAction", "ToolgymEnv", "ToolgymObservation"]
'''
_APP: Final = '''"""The server of {env_id}: `server --host 0.0.0.0 --port {port}`.

A client selects a task; all other settings are fixed below. The Host header of a request must be
localhost, the name of the Space of Hugging Face, or a name in the comma-separated variable
TOOLGYM_HOSTS.
"""

import argparse

from adapters.openenv.server import exported_application
from adapters.serving.guard import open_socket, serve

app = exported_application(
    {env_id!r},
    {env_kwargs},
    max_sessions={max_sessions},
    idle={idle},
)


def main() -> None:
    """Serve until the process is stopped."""
    options = argparse.ArgumentParser(description="Serve {env_id} by OpenEnv.")
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, default={port})
    given = options.parse_args()
    serve(app, open_socket(given.port, given.host))


if __name__ == "__main__":
    main()
'''
_DOCKERFILE: Final = f"""# In the folder above: docker build -f server/Dockerfile -t toolgym-env .
# Put wheels of packages that are not on an index into the folder wheels.
FROM python:3.11-slim

# A Space runs as this user.
RUN useradd --create-home --uid 1000 user
WORKDIR /app/env
COPY . /app/env
RUN pip install --no-cache-dir --find-links /app/env/wheels /app/env
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

{{purpose}} Tools: {{tools}}.

    from {PACKAGE} import ToolgymAction, ToolgymEnv

    with ToolgymEnv(base_url="http://localhost:{PORT}").sync() as client:
        result = client.reset(split="{{split}}", index=0)
        print(result.observation.text)
        result = client.step(ToolgymAction(text="..."))
        print(result.observation.text, result.reward, result.done)

An action is the whole message of the model. Rewards add up to the score.
`ToolgymAction(finish=True)` closes an episode; its reward is the remaining part of the score. After
a fault of the environment `scored` is false and there is no reward. Exclude such episodes.

Run it with `docker build -f server/Dockerfile -t toolgym-env .` and
`docker run -p {PORT}:{PORT} toolgym-env`. Without a container, use `pip install .` and `server`.
The Host header of requests must be localhost or the Space. The variable `TOOLGYM_HOSTS=name,name`
adds other names.
"""


def write_folder(
    out: Path,
    env_id: str,
    env_kwargs: Mapping[str, Any],
    *,
    max_sessions: int = 64,
    idle: float = 900.0,
) -> list[str]:
    """Write the folder atomically.

    Args:
        out: The folder, which must not exist or must be empty.
        env_id: Id of a registered environment.
        env_kwargs: Arguments of the environment, as JSON values.
        max_sessions: Maximum number of open sessions.
        idle: Seconds after which a session without messages is closed.

    Returns:
        The names of the files.

    Raises:
        ConfigurationError: If the folder cannot be used, the environment cannot be made, or its
            data set exists only on this machine.
        EnvironmentFault: If a file cannot be written.
    """
    dataset = registration.dataset_of(env_id, env_kwargs)
    if isinstance(dataset, str | Path) and Path(dataset).expanduser().exists():
        raise ConfigurationError(
            f"the data set {dataset} is on this machine, but a container only has the data sets of"
            " toolgym. Use one of these, or write a Dockerfile that copies the data set."
        )
    env = registration.make(env_id, **env_kwargs)
    lowest, highest = env.reward_config.bounds
    values = {
        "env_id": env_id,
        "version": version("toolgym"),
        "lowest": round(lowest, 6),
        "highest": highest,
        "tools": json.dumps(list(env.tools)),
        "port": PORT,
        "purpose": " ".join((type(env).__doc__ or "").strip().split("\n\n")[0].split()),
        "split": env_kwargs.get("split", "train"),
        "env_kwargs": pprint.pformat(dict(env_kwargs), width=90),
        "max_sessions": max_sessions,
        "idle": idle,
    }
    sources = Path(adapters.openenv.__file__).parent
    client = (sources / "client.py").read_text("utf-8")
    texts = {
        "openenv.yaml": _MANIFEST.format(**values),
        "README.md": _README.format(**values),
        "pyproject.toml": _PROJECT.format(**values),
        "__init__.py": _INIT.format(**values),
        "models.py": (sources / "models.py").read_text("utf-8"),
        "client.py": client.replace("from adapters.openenv.models", "from .models"),
        "server/__init__.py": f'"""The server of {env_id}."""\n',
        "server/app.py": _APP.format(**values),
        "server/Dockerfile": _DOCKERFILE,
    }
    with put_in_place(out) as built:
        write_texts(texts, built)
    return list(texts)
