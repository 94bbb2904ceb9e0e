"""The experiments, one in a file of its own: what it claims, what it does, and what to draw of it.

Begin with `post_episode`, which is arithmetic and has no training, then `group_size`; the others
are read in any order. Each file has its constants, its claims (`PREDICTIONS`), `run` from a config
and a seed to a record, `cells` from a scale to configs, `figures`, and `EXPERIMENT`, which names
all of them. `adapters.lab.catalogue` lists the files in the order of the report.
"""
