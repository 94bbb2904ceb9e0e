"""Several processes of one run, as `torchrun` starts them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def launch(out: Path, processes: int, module: str, *words: str) -> None:
    """Run a module in some processes; what they print and return is left in the folder `out`."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes)]
    command += ["--master_port", str(29500 + os.getpid() % 2000), "-m", module, *words]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    with (out / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            command, stdout=stderr, stderr=stderr, cwd=ROOT, env=environ, start_new_session=True
        )
        try:
            code = process.wait(timeout=1200)
        except subprocess.TimeoutExpired:  # one waits for the other for ever
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    (out / "returncode").write_text(str(code))
