"""A workflow model so small that a training takes a second, and the loop that trains it.

In the order in which to read it: `tokens` (its language), `world` (what a text is worth, by real
episodes), `model`, `start` (what it has imitated before a training), `loop` (the training),
`measure` (what it can do, and other ways to judge the same episodes), `guarded` (a training with
guards).
"""
