# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Train the tiny model and read its report
#
# This notebook trains a transformer of half a million parameters from scratch: first by supervised
# learning on demonstrations, then by GRPO in the environment. After about five minutes on one core
# there is a run folder with metrics, transcripts and checkpoints, and a report as one HTML page.
#
# It requires `pip install 'toolgym[train,notebooks]' jupyterlab`. JupyterLab opens this file with
# *Open With*, *Notebook*. `jupytext --to ipynb train_and_report.py` converts it.

# %% tags=["parameters"]
OPTIONS = {}

# %% [markdown]
# For a test run of one minute, put this into the cell above. The model then learns nothing, and its
# report says so:
#
# ```python
# OPTIONS = {"sft_steps": 20, "demonstrations": 100, "steps": 2, "eval_tasks": 8}
# OPTIONS["preflight"] = False
# ```

# %%
import pandas as pd
from IPython.display import IFrame

import toolgym
from adapters.commands.train import train
from toolgym.report import write_report

# %% [markdown]
# ## The training
#
# `train` does the same as `toolgym train sqlgym/Explore-v0` in a terminal, and takes the same
# settings as arguments. It prints the model, the data and the evaluations, and then a line for each
# phase.

# %%
run = train("sqlgym/Explore-v0", trainer="reference", **OPTIONS)

# %% [markdown]
# ## The result
#
# All evaluated tasks are held out from the training. "Unseen databases" are harder, because the
# model has not seen their tables either. Compare the sampled results before and after the training.
# Greedy results vary more between trainings.

# %%
summary = run.summary
pd.DataFrame(
    {
        (each["name"], when): {
            "accuracy": each[when]["accuracy"],
            "from (95 %)": each[when]["interval"][0],
            "to (95 %)": each[when]["interval"][1],
            "valid turns": each[when]["validity"],
            "episodes": each[when]["episodes"],
        }
        for each in summary["evaluations"]
        for when in ("before", "after")
    }
).T.round(3)

# %%
print(summary["gain"])

# %% [markdown]
# ## The curves
#
# Each GRPO step logs one line of metrics. Look first at the reward, the share of dead groups (whose
# members all had the same outcome), the entropy of the policy, and the share of turns with valid
# calls.

# %%
FIRST = ["reward", "dead_groups", "entropy", "validity"]
steps = run.metrics("grpo")
points = [
    {"step": line["step"], "metric": name, "value": line[name]}
    for line in steps
    for name in FIRST
    if line.get(name) is not None
]
try:
    import altair as alt
except ImportError:
    print("Install Altair to draw a plot: pip install 'toolgym[notebooks]'")
    picture = pd.DataFrame(points).pivot(index="step", columns="metric", values="value")
else:
    alt.renderers.enable("svg")  # a plot without a network request and without a script
    lines = alt.Chart(alt.Data(values=points)).mark_line()
    picture = (
        lines.encode(x="step:Q", y=alt.Y("value:Q", title=None))
        .properties(width=280, height=140)
        .facet(alt.Facet("metric:N", title=None), columns=2)
        .resolve_scale(y="independent")
    )
picture

# %% [markdown]
# ## The same task before and after
#
# This is the first task that the model solves only after the training, or the first task if there
# is none.

# %%
before = {episode.task_id: episode for episode in toolgym.read_episodes(run.path, "before")}
after = {episode.task_id: episode for episode in toolgym.read_episodes(run.path, "after")}
changed = [task for task in after if after[task].correct > before[task].correct]
task_id = (changed or list(after))[0]
print(f"{len(changed)} of {len(after)} tasks are solved only after the training")
for name, episode in (("before", before[task_id]), ("after", after[task_id])):
    print(f"\n{name}: {episode}")
    for turn in episode.turns:
        print(f"> {turn['action']}\n{turn['observation']}")

# %% [markdown]
# ## The report
#
# The training has already written the report. `write_report` writes it again, also for several runs
# on one page. The page works offline.

# %%
report = write_report(run)
print(report)
IFrame(str(report), width="100%", height=600)

# %% [markdown]
# ## Next
#
# - `toolgym audit RUN` checks the verdicts with a second, independent implementation.
# - `toolgym train sqlgym/Explore-v0 --control shuffled-rewards` makes a control run.
# - `toolgym train sqlgym/Explore-v0 --model PATH` trains a pretrained model.
