"""Data sets made of environments and runs, in the layout of Hugging Face, for trainers elsewhere.

Read `folder` first: a folder with one file for each split and a card, which
`datasets.load_dataset` loads. `tables` says what may stand in a row so that it comes back as it
was written, `card` writes the card. What is exported: `rows` (tasks, in the row formats of
trainers), `demonstrations` (the expert's transcripts) and `rollouts` (of a run). None of them needs
an extra for lines of JSON; parquet needs `train`. `openenv_folder` is another kind of folder: an
environment, as OpenEnv packs one.
"""
