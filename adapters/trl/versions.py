"""Which versions of TRL the trainers of this package were read for.

`environment_factory` and the data sets use what TRL documents, and work from 1.16 on. The trainers
wrap methods of `GRPOTrainer` that TRL may change in any minor release without a word; one that was
wrapped wrongly would train, and train something else. So they begin only with what was read.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from toolgym.errors import ConfigurationError

READ_FOR: Final = ("1.16",)
"""Minor releases whose `GRPOTrainer` was read, and with which the tests of the trainers pass."""


def check_version() -> None:
    """Make sure that the installed TRL is one whose trainer was read.

    Raises:
        ConfigurationError: It is another one; the message says what works with it.
    """
    installed = version("trl")
    if ".".join(installed.split(".")[:2]) in READ_FOR:
        return
    raise ConfigurationError(
        f"StableGRPOTrainer and ToolGRPOTrainer were read for TRL {' and '.join(READ_FOR)}, and"
        f" {installed} is installed: they wrap methods of GRPOTrainer that may have changed since."
        f" Install one that was read (pip install 'trl=={READ_FOR[-1]}.*'), train without TRL"
        " (toolgym train --trainer reference), or give environment_factory and training_dataset to"
        " TRL's own GRPOTrainer, which works with this version."
    )
