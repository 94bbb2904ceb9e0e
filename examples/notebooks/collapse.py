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
# # Watch a collapse and undo it
#
# A common way to lose a training run: a model learns from demonstrations in which each tool call
# carries the arguments of *all* tools, `null` where it has none. Strict tools refuse such a call.
# So whatever the model tries, it earns the same, and there is nothing to learn from: the reward
# curve is a flat line, and the gradient is zero.
#
# Below this happens to a small model, with numbers that are measured here and now. Then one setting
# is changed, and the same model learns. It takes about a minute on two cores, and needs
# `pip install 'toolgym[train,notebooks]'`.

# %% tags=["parameters"]
IMITATION_STEPS = 1200
STRICT_STEPS = 4
LENIENT_STEPS = 30

# %%
import copy
import json
import logging
import statistics
import warnings

warnings.filterwarnings("ignore", message="IProgress not found")  # bars of tqdm are text then

import pandas as pd
import torch
from transformers.utils.logging import disable_progress_bar

from adapters.lab.sql.tiny_grpo import NO_COSTS, TinyGrpo, sampled_score, train
from adapters.lab.sql.tiny_start import TinyStart, exported, padded, started
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.models.chat_policy import ChatModelPolicy
from toolgym import rollout

torch.set_num_threads(1)
disable_progress_bar()  # of each file of weights
logging.disable(logging.WARNING)  # guards tell every step; here their last word is enough
ENVIRONMENT = "sqlgym/Explore-v0"
TASKS = {"dataset": "tiny", "split": "train", "rewards": dict(NO_COSTS)}

# %% [markdown]
# ## Where the nulls come from
#
# Demonstrations are transcripts: a list of messages with tool calls. This is a call as an expert
# made it, and the same call after the transcripts went through a data set whose column types Arrow
# was left to find. Arrow stores structures of one type in a column, so every call gets every
# argument.

# %%
transcripts = exported(4, seed=0, guesses=0.0)


def first_call(transcript):
    """The arguments of the first tool call of a transcript."""
    call = next(message for message in transcript if message.get("tool_calls"))
    return call["tool_calls"][0]["function"]


print("as the expert made it:     ", json.dumps(first_call(transcripts[0])))
print("as the data set returns it:", json.dumps(first_call(padded(transcripts)[0])))

# %% [markdown]
# ## A model that imitates them
#
# A transformer of less than two hundred thousand parameters is made from scratch, and imitates such
# transcripts. It has no way to know that the nulls do not belong there.

# %%
start = TinyStart(padded=1.0, steps=IMITATION_STEPS)
model, tokenizer = started(start, seed=0)
first_weights = copy.deepcopy(model.state_dict())
print(f"{sum(weight.numel() for weight in model.parameters()):,} parameters")

# %% [markdown]
# ## One question, asked eight times
#
# In GRPO a group is several rollouts of one task. What a rollout teaches is its advantage: how much
# more it earned than its group. First with strict tools, which refuse what they do not know.

# %%
GROUP = 8


def group(parsing):
    """Eight rollouts of one task, sampled from the model that has imitated."""
    policy = ChatModelPolicy(model, tokenizer, temperature=1.0, max_new_tokens=96)
    made = rollout.run(
        ENVIRONMENT, policy, [task_id] * GROUP, seed=0, parsing=parsing, step_limit=6, **TASKS
    )
    return list(made)


task_id = rollout.play(ENVIRONMENT, "expert", seed=1, **TASKS).task_id
groups = {"strict": group("strict")}
groups["strict"][0]

# %% [markdown]
# That is the wall. The other seven did no better, so no rollout is better than its group:


# %%
def advantages(records):
    """The score of each rollout less the mean of its group."""
    mean = statistics.fmean(record.score for record in records)
    return [record.score - mean for record in records]


def shown(parsing):
    """The scores and advantages of a group, one row for each rollout."""
    records = groups[parsing]
    scores = [record.score for record in records]
    return pd.DataFrame({"score": scores, "advantage": advantages(records)}).round(3)


shown("strict")

# %% [markdown]
# ## The training does not move
#
# Each step plays four such groups and makes an update. Guards are off in this run, since the
# failure itself is to be seen.


# %%
def train_with(parsing, steps, **trainer):
    """The numbers of each step of a training that begins with the weights after the imitation."""
    model.load_state_dict(first_weights)
    grpo = TinyGrpo(steps, {"parsing": parsing, "rewards": NO_COSTS}, trainer)
    return train((model, tokenizer), grpo, seed=0)


def weights_moved():
    """The largest change of any weight since the imitation."""
    now = model.state_dict()
    return max(float((now[name] - first_weights[name]).abs().max()) for name in now)


COLUMNS = {
    "reward": "mean reward",
    "tool_failures": "calls refused",
    "nulls": "calls with nulls",
    "zero_variance_groups": "groups with equal rewards",
    "grad_norm": "gradient",
}


def table(history):
    """The numbers of a training as a table, one row a step."""
    rows = pd.DataFrame(history)[list(COLUMNS)].rename(columns=COLUMNS)
    return rows.set_index(pd.RangeIndex(1, len(rows) + 1, name="step")).round(3)


history = {"strict": train_with("strict", STRICT_STEPS)}
moved = {"strict": weights_moved()}
print("largest change of a weight:", moved["strict"])
table(history["strict"])

# %% [markdown]
# ## What a guard says
#
# Nobody should have to find this in a plot after a night. With the guards on, as they are in any
# training of this library, the run is ended after a few steps, with a reason:

# %%
try:
    train_with("strict", 40, guards={})
    diagnosis = "no guard stopped it"
except TrainingStopped as stop:
    diagnosis = str(stop)
print(diagnosis)

# %% [markdown]
# ## One setting undoes it
#
# Lenient parsing is the default of every environment here: an argument that a tool does not know
# and that holds nothing is dropped, and the repair is recorded. Same weights, same task, same
# seed. The best of the eight:

# %%
groups["lenient"] = group("lenient")
max(groups["lenient"], key=lambda record: record.score)

# %%
shown("lenient")

# %% [markdown]
# Some rollouts are better than others now, so there are advantages, a gradient, and a training:

# %%
history["lenient"] = train_with("lenient", LENIENT_STEPS)
moved["lenient"] = weights_moved()
print("largest change of a weight:", round(moved["lenient"], 4))
table(history["lenient"]).iloc[[0, 1, 2, -3, -2, -1]]

# %% [markdown]
# Each step plays other tasks, so its reward is noisy. This is the mean score on the same 96
# rollouts of 48 tasks, before and after:


# %%
def score():
    """The mean score of the model as it is now, with lenient tools."""
    env = {"parsing": "lenient", "rewards": NO_COSTS}
    return sampled_score((model, tokenizer), env, tasks=48, tries=2, seed=0)


scores = {"after": score()}
model.load_state_dict(first_weights)
scores["before"] = score()
print(f"before {scores['before']:.3f}, after {scores['after']:.3f}")

# %% [markdown]
# Both runs in one picture; a point is the mean over the 32 rollouts of a step.

# %%
points = [
    {"tools": parsing, "step": number, "what": name, "value": step[key]}
    for parsing, steps in history.items()
    for number, step in enumerate(steps, start=1)
    for key, name in COLUMNS.items()
    if key in ("reward", "grad_norm")
]
try:
    import altair as alt
except ImportError:
    print("With Altair installed this is a picture: pip install 'toolgym[notebooks]'")
    picture = pd.DataFrame(points)
else:
    alt.renderers.enable("svg")  # a picture that needs neither a network nor a script
    lines = alt.Chart(alt.Data(values=points)).mark_line(point=True)
    picture = (
        lines.encode(x="step:Q", y=alt.Y("value:Q", title=None), color="tools:N")
        .properties(width=300, height=180)
        .facet(alt.Facet("what:N", title=None))
        .resolve_scale(y="independent")
    )
picture

# %% [markdown]
# ## What to take along
#
# - A flat reward curve with a gradient of exactly zero is no slow start. Nothing will come of it.
# - Look at groups, not at means: a group whose members earn the same teaches nothing.
# - Repair what has one plain meaning, record it, and let it cost a little.
# - Better still, export nothing that is padded: `toolgym export demonstrations` writes features
#   that Arrow cannot pad.
#
# `toolgym lab` makes the same experiment over several seeds, with what else is told of such
# collapses, and says of each claim whether it holds.
