"""sqlgym: explore a hidden database through tools, and answer a question about it.

Importing this registers the environments with Gymnasium:

* `sqlgym/Explore-v0`: the answer is a value.

`__toolgym__` marks this package as the one of the distribution `toolgym`; another distribution on
the package index is called sqlgym too, and `toolgym doctor` tells them apart by it.
"""

import gymnasium

__toolgym__ = True

gymnasium.register(id="sqlgym/Explore-v0", entry_point="sqlgym.env:ExploreEnv")
