"""Where programs run that a language model wrote, and that are hostile until proved otherwise.

`open_sandbox` gives the strongest that works on this machine, after it has proved itself, and
refuses where none does; `default_sandbox` gives one for the whole process. Either is passed as
`sandbox=` to `aflowgym.execute`, `aflowgym.grade` or an environment.

What runs there is one call of a function at a time. Arguments go in as texts of literals, a plain
value comes out; whether it is the right one is decided outside (`aflowgym.answers.code`), where no
program reaches. `level` of a sandbox tells which walls stand and what they leave open.
"""

from aflowgym.sandbox.choosing import default_sandbox, open_sandbox
from aflowgym.sandbox.limits import Level, Limits, SandboxRefused
from aflowgym.sandbox.subset import SubsetSandbox
from aflowgym.sandbox.unsafe import UnsafeSandbox
from aflowgym.sandbox.walled import WalledSandbox

__all__ = [
    "Level",
    "Limits",
    "SandboxRefused",
    "SubsetSandbox",
    "UnsafeSandbox",
    "WalledSandbox",
    "default_sandbox",
    "open_sandbox",
]
