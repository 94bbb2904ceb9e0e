"""Export of data sets and environments as folders for other frameworks.

`folder` writes a folder with one file per split and a card, which `datasets.load_dataset` loads.
`tables` defines the columns and rows. `rows` exports tasks in the row formats that trainers expect.
`demonstrations` exports transcripts of the expert, and `rollouts` exports the rollouts of a run.
`openenv_folder` and `verifiers_package` export an environment.

JSON Lines requires only the base install; Parquet requires the extra `train`.
"""
