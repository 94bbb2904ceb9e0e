"""Which tasks a step of training plays: by hardness, or by how often the policy succeeds.

Both samplers are off unless somebody makes one. They draw ids from a `TaskSet`, decided by seed and
step alone (and, for success, by what was observed), without repeating a task within a step.

A group of K rollouts of one task teaches only if some are right and some are wrong. With success
rate p the chance of that is 1 - p^K - (1-p)^K, which `SuccessCurriculum` prefers. Rates are held as
a Beta distribution, so a task that was never tried has a weight, and none ever drops to zero.

A rate near zero may be a fact of the task, or of a format that the policy and the environment do
not share: then the hard tasks are not hard, and a sampler that believes the rate starves them (one
such run scored 0.000 where drawing evenly reached 0.891, marin-community/marin#8765). So rates are
believed only if calls are bound, episodes are answered, and who has found the result is judged
right; see `Trust`. And a failure counts against a task only if it was the task's.
"""

from toolgym.curriculum.by_hardness import HardnessCurriculum, level_of
from toolgym.curriculum.by_success import SuccessCurriculum, mixed_chance
from toolgym.curriculum.format_check import FormatMismatch, Trust

__all__ = [
    "FormatMismatch",
    "HardnessCurriculum",
    "SuccessCurriculum",
    "Trust",
    "level_of",
    "mixed_chance",
]
