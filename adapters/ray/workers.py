"""A `map` whose parts run on the workers of a Ray cluster (`toolgym.workers`).

A cluster that this module starts listens only on the loopback interface, accepts only processes
with its token, has no dashboard, sends no statistics and leaves no files. On an existing cluster,
every node must have the same version of toolgym.
"""

from __future__ import annotations

import functools
import os
import secrets
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.workers import MOST_CHARS, Map, WorkerLost

LOCAL: Final = "local"
RETRIES: Final = 3
"""Number of retries of a part whose worker was lost."""
_LOOPBACK: Final = "127.0.0.1"


def map_on_ray(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Yield the `map` of the cluster to which this process is connected (`ray.init`).

    Each item is one Ray task that uses one core. A part whose worker is lost is repeated up to
    `RETRIES` times. Exceptions of toolgym are raised unchanged.

    Raises:
        ConfigurationError: If a node has another version of toolgym.
        WorkerLost: If a part lost its worker in every attempt.
    """
    import ray

    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_do)
    sent, here = ray.put(function), (str(Path.cwd()), version("toolgym"))
    waiting = deque(task.remote(*here, sent, item) for item in items)
    try:
        for item in items:
            # The reference must be dropped with the result, or all results would be held until the
            # last one.
            try:
                yield ray.get(waiting.popleft())
            except ray.exceptions.RayTaskError as problem:
                raise problem.cause from problem
            except ray.exceptions.RayError as problem:
                how = name = type(problem).__name__
                if name in ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError"):
                    how = f"a worker was lost {RETRIES + 1} times ({name})"
                raise WorkerLost(
                    f"{how} while it worked on {item!r:.{MOST_CHARS}}.",
                    "Check whether the node has enough memory, or run without --ray.",
                ) from problem
    finally:
        for ref in waiting:
            ray.cancel(ref, force=True)


def _do(folder: str, ours: str, function: Callable[[Any], Any], item: Any) -> Any:
    """Run one part in a worker, in the working directory of the caller if the node has it."""
    if (theirs := version("toolgym")) != ours:
        raise ConfigurationError(
            f"a node of the cluster has toolgym {theirs}, but this process has {ours}. Install the"
            " same version on all nodes, in the Python that runs Ray."
        )
    if Path(folder).is_dir():
        os.chdir(folder)
    return function(item)


@contextmanager
def ray_workers(address: str) -> Iterator[Map]:
    """Connect to a cluster, or start one on this machine, and yield its `map`.

    Args:
        address: `local`, or HOST:PORT of a cluster that includes this machine.

    Raises:
        ConfigurationError: If Ray is not installed, this process is already connected, or there is
            no such cluster.
        EnvironmentFault: If no cluster can be started on this machine.
    """
    host, _, port = address.rpartition(":")
    variables = {  # the processes of Ray inherit these
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray prints events of workers on stdout, which is reserved for results. Skip every line.
        "RAY_DEDUP_LOGS": "1",
        "RAY_DEDUP_LOGS_SKIP_REGEX": "^",
    }
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    with ExitStack() as leaving:
        if address == LOCAL:
            # Paths of sockets have at most 107 characters, so the folder needs a short name.
            place = "/tmp" if Path("/tmp").is_dir() else None
            folder = leaving.enter_context(
                tempfile.TemporaryDirectory(
                    prefix="toolgym-ray-", dir=place, ignore_cleanup_errors=True
                )
            )
            variables |= {"RAY_AUTH_TOKEN": _token()}
            options |= {
                "include_dashboard": False,
                "object_store_memory": 256 * 2**20,  # larger results go to files
                "_system_config": {"task_oom_retries": RETRIES},  # otherwise Ray retries forever
                # Ray makes it accessible to all users, but the folder around it is private.
                "_temp_dir": f"{folder}/ray",
            }
        elif "/" in host or not host or not port.isdecimal():
            raise ConfigurationError(
                f"--ray must be {LOCAL}, or HOST:PORT of a cluster of which this machine is a node;"
                f" got {address}."
            )
        else:
            variables["RAY_gcs_server_port_wait_time_s"] = "2"  # otherwise Ray tries for minutes
        leaving.enter_context(patch.dict(os.environ, variables))
        if address == LOCAL:  # without a mode Ray requires a token and uses the one that is set
            os.environ.pop("RAY_AUTH_MODE", None)
        try:
            import ray
        except ImportError as problem:
            raise ConfigurationError(
                f"--ray needs Ray 2.60 or newer ({problem}). Run: pip install 'toolgym[ray]'"
            ) from problem
        if ray.is_initialized():
            raise ConfigurationError(
                "this process is already connected to Ray. Use its workers with"
                " adapters.ray.workers.map_on_ray, or disconnect with ray.shutdown()."
            )
        if address == LOCAL or host in (_LOOPBACK, "localhost"):
            # Ray would replace 127.0.0.1 with another address of the machine.
            constants = ray._private.ray_constants
            leaving.callback(setattr, constants, "ENABLE_RAY_CLUSTER", constants.ENABLE_RAY_CLUSTER)
            constants.ENABLE_RAY_CLUSTER = False
        leaving.callback(ray.shutdown)
        try:
            if address != LOCAL:  # otherwise Ray tries for minutes
                socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
            ray.init(address, **options)
        except Exception as problem:  # Ray also raises bare exceptions
            reason = " ".join(str(problem).split())[:500]
            if address == LOCAL:
                raise EnvironmentFault(
                    f"Ray did not start on this machine: {reason}",
                    "Ray stops waiting after half a minute, so the machine may be busy. Start a"
                    " cluster with `ray start --head`, and pass its address to --ray.",
                ) from problem
            raise ConfigurationError(
                f"--ray {address}: there is no cluster to connect to: {reason}"
            ) from problem
        if address == LOCAL and (own := ray.util.get_node_ip_address()) != _LOOPBACK:
            raise EnvironmentFault(
                f"Ray {ray.__version__} listens at {own} instead of the loopback interface.",
                "Install the version in docs/integrations.md, or start a cluster and pass its"
                " address.",
            )
        yield map_on_ray


@functools.cache
def _token() -> str:
    """Return the token for the clusters of this process. Ray reads it only once."""
    return os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32)
