"""Data sets and environments as folders for other frameworks.

Read `folder` first: a folder with one file per split and a card, which `datasets.load_dataset`
loads. `tables` defines columns and rows. Data sets are `rows` (tasks, in the row formats of
trainers), `demonstrations` (transcripts of the expert) and `rollouts` (of a run). Lines of JSON
need the base install only; parquet needs the extra `train`. `openenv_folder` and
`verifiers_package` write an environment.
"""
