"""A `map` that does the parts of some work in the workers of a Ray cluster (`toolgym.workers`).

Ray decides which worker does a part, and gives the part to another one if its worker is lost. An
exception of ours is raised here as itself. A cluster that is started here listens on the loopback
interface only, admits only processes with its token, has no dashboard, sends no statistics and
leaves no files. On a cluster that is connected to, every node must have our version of toolgym.
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

from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.workers import MOST_CHARS, Map, WorkerLost

LOCAL: Final = "local"
RETRIES: Final = 3
"""How often a part is done again whose worker was lost."""
_CONNECT: Final = 10.0
"""Seconds in which something must answer at the address of a cluster."""
_ANSWER: Final = 300.0
"""Seconds in which a node must say which version of toolgym it has."""
_MEMORY: Final = 256 * 2**20
"""Bytes in which a cluster of our own keeps results on their way; more of them go to its files."""
_LOOPBACK: Final = "127.0.0.1"
_QUIET: Final = {"log_to_driver": False, "logging_level": "error"}
_ENVIRON: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray prints what happens to workers on stdout, which is for results: skip every line of it.
    "RAY_DEDUP_LOGS": "1",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",
}


def map_on_ray(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """The `map` of the cluster that this process is connected to (`ray.init`).

    Each item is one task of Ray, with one core. A part whose worker is lost is done again, up to
    `RETRIES` times.

    Raises:
        WorkerLost: The worker of a part was lost, and each of those that did it again.
    """
    import ray

    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_do)
    sent, folder = ray.put(function), str(Path.cwd())
    waiting = deque(task.remote(folder, sent, item) for item in items)
    try:
        for item in items:
            # The reference goes with the result, or all results would be held until the last one.
            yield _result(ray, waiting.popleft(), item)
    finally:
        for ref in waiting:
            ray.cancel(ref, force=True)


def _do(folder: str, function: Callable[[Any], Any], item: Any) -> Any:
    """One part, in a worker, with the working directory of the caller if the node has it."""
    if Path(folder).is_dir():
        os.chdir(folder)
    return function(item)


def _result(ray: Any, ref: Any, item: Any) -> Any:
    try:
        return ray.get(ref)
    except ray.exceptions.RayTaskError as problem:
        raise problem.cause from problem
    except ray.exceptions.RayError as problem:
        kinds = ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError")
        lost = (name := type(problem).__name__) in kinds
        how = f"a worker was lost {RETRIES + 1} times ({name})" if lost else f"Ray failed ({name})"
        hint = "Look whether it needs more memory than there is, or work without --ray."
        raise WorkerLost(f"{how} while it worked on {item!r:.{MOST_CHARS}}.", hint) from problem


@contextmanager
def ray_workers(address: str) -> Iterator[Map]:
    """Connect to a cluster, or start one on this machine, and yield its `map`.

    Args:
        address: `local`, or HOST:PORT of a cluster that this machine is a node of.

    Raises:
        ConfigurationError: Ray is not installed, or this process has a connection already, or there
            is no such cluster, or a node of it has another toolgym.
        EnvironmentFault: No cluster can be started here.
    """
    with ExitStack() as leaving:
        options: dict[str, Any] = {"address": address}
        leaving.enter_context(_environ(**_ENVIRON))
        if address != LOCAL:
            _check_address(address)
            leaving.enter_context(_environ(RAY_gcs_server_port_wait_time_s="2"))  # two attempts
        try:
            import ray
        except ImportError as problem:
            raise ConfigurationError(
                f"--ray needs Ray 2.60 or newer ({problem}); run: pip install 'toolgym[ray]'"
            ) from problem
        if ray.is_initialized():
            raise ConfigurationError(
                "this process is connected to Ray already: use its workers by"
                " adapters.ray.workers.map_on_ray, or end it by ray.shutdown()."
            )
        if address == LOCAL:
            options |= leaving.enter_context(_private_cluster())
        if address.rpartition(":")[0] in ("", "127.0.0.1", "localhost"):
            leaving.enter_context(_loopback(ray))
        leaving.callback(ray.shutdown)
        try:
            ray.init(**options, **_QUIET)
        except Exception as problem:  # Ray raises bare ones, too
            raise _unreachable(address, problem) from problem
        if address != LOCAL:
            _check_versions(ray, address)
        elif (own := ray.util.get_node_ip_address()) != _LOOPBACK:
            raise EnvironmentFault(
                f"Ray {ray.__version__} listens at {own}, and not on the loopback interface only.",
                "Take the version that docs/ray.md names, or start a cluster and give its address.",
            )
        yield map_on_ray


def _unreachable(address: str, problem: Exception) -> Exception:
    told = " ".join(str(problem).split())[:500]
    if address == LOCAL:
        return EnvironmentFault(
            f"Ray did not start on this machine: {told}",
            "It gives up after half a minute, so the machine may be busy: start it by"
            " `ray start --head`, and give --ray the address.",
        )
    return ConfigurationError(f"--ray {address}: there is no cluster to connect to: {told}")


def _check_address(address: str) -> None:
    """Look whether somebody listens there, since Ray would try for minutes.

    Raises:
        ConfigurationError: Nobody does, or it is no such address.
    """
    host, _, port = address.rpartition(":")
    if "/" in host or not host or not port.isdecimal():
        raise ConfigurationError(
            f"--ray takes HOST:PORT of a cluster that this machine is a node of, or {LOCAL};"
            f" got {address}."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT).close()
    except (OSError, OverflowError) as problem:
        raise _unreachable(address, problem) from problem


@contextmanager
def _loopback(ray: Any) -> Iterator[None]:
    """Let Ray use 127.0.0.1, which it takes for another address of the machine without this."""
    constants = ray._private.ray_constants
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _private_cluster() -> Iterator[dict[str, Any]]:
    """The options of a cluster that nobody else reaches, and that leaves nothing behind."""
    # Paths of sockets have at most 107 characters, so a folder of a long name will not do.
    place = "/tmp" if Path("/tmp").is_dir() else None
    folders = tempfile.TemporaryDirectory(
        prefix="toolgym-ray-", dir=place, ignore_cleanup_errors=True
    )
    # Where the mode is not set, Ray demands a token, and would write one into the home folder.
    with folders as folder, _environ(RAY_AUTH_MODE=None, RAY_AUTH_TOKEN=_token()):
        yield {
            "include_dashboard": False,
            "object_store_memory": _MEMORY,
            "_system_config": {"task_oom_retries": RETRIES},  # or it would go on for ever
            "_temp_dir": f"{folder}/ray",  # Ray opens it to all, who cannot pass the folder
        }


@functools.cache
def _token() -> str:
    """The token for the clusters of this process, in which Ray reads it only once."""
    return os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32)


@contextmanager
def _environ(**values: str | None) -> Iterator[None]:
    """Environment variables, which the processes of Ray inherit; None stands for unset."""
    before = {name: os.environ.get(name) for name in values}
    for name, value in values.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _check_versions(ray: Any, address: str) -> None:
    """Make sure that every node has our version of toolgym.

    Raises:
        ConfigurationError: One has another, or none.
    """

    def found() -> str:  # not at the top of a module, since it is sent to where there may be none
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("toolgym")
        except PackageNotFoundError:
            return ""

    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    ours = version("toolgym")
    task = ray.remote(num_cpus=0)(found)
    for node in filter(lambda node: node["Alive"], ray.nodes()):
        asked = task.options(scheduling_strategy=On(node["NodeID"], soft=False)).remote()
        try:
            theirs = ray.get(asked, timeout=_ANSWER)
        except ray.exceptions.RayError as problem:
            name = type(problem).__name__
            raise EnvironmentFault(f"a node of {address} does not answer ({name}).") from problem
        if theirs != ours:
            raise ConfigurationError(
                f"--ray {address}: the node {node['NodeManagerAddress']} has"
                f" {f'toolgym {theirs}' if theirs else 'no toolgym'}, and here is {ours}: install"
                " the same version on all nodes, into the Python that runs Ray."
            )
