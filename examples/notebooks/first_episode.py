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
# # A first episode
#
# An environment asks a question about a database that the agent cannot see. The agent looks at it
# through four tools, one call at a time, and ends by answering. What it writes is text, as a
# language model writes it, and so is what it reads.
#
# Here you are the agent. Everything runs in seconds, and needs `pip install toolgym` only.

# %%
import gymnasium as gym

import sqlgym  # noqa: F401  (its import registers the environments)
import toolgym
from toolgym import rollout

env = gym.make("sqlgym/Explore-v0")
observation, info = env.reset(options={"task_id": "mountain_huts-039"})
print(observation)

# %% [markdown]
# A seed chooses a task too, the same one on every machine. These are the tools that a model sees:

# %%
for schema in env.unwrapped.tool_schemas():
    function = schema["function"]
    print(f"{function['name']}({', '.join(function['parameters']['properties'])})")
    print(f"    {function['description'].splitlines()[0]}")

# %% [markdown]
# ## A call that is not quite right
#
# Models write `null` for arguments that they do not need, and call an argument `table` whose name
# is `table_name`. Both mean one thing only, so the call is repaired. Each repair is recorded, and
# costs a little.

# %%
sloppy = '<tool_call>{"name": "describe", "arguments": {"table": "huts", "sql": null}}</tool_call>'
observation, reward, terminated, truncated, info = env.step(sloppy)
print(observation)
print("repairs:", info["repairs"])

# %% [markdown]
# ## A call that is wrong
#
# There is no column `altitude`. That is no exception: the agent reads what is wrong, what was
# probably meant, and a whole call that would work now. A model can learn from that; a stack trace
# teaches it nothing.

# %%
wrong = {"name": "query", "arguments": {"sql": "SELECT max(altitude) FROM huts"}}
observation, reward, terminated, truncated, info = env.step(wrong)
print(observation)
print("error:", info["error"].code)

# %% [markdown]
# ## The answer
#
# A third way to write a call is as Python. The forms of all common families of models are read.

# %%
observation, *_ = env.step("query(sql='SELECT max(altitude_m) - min(altitude_m) FROM huts')")
print(observation)

# %%
difference = int(observation.splitlines()[1])
observation, reward, terminated, truncated, info = env.step(f"answer({difference})")
print(observation)
print("correct:", info["correct"], "· score:", round(info["score"], 3))

# %% [markdown]
# The episode as a whole. A right answer is worth 1; each call, each failed call and each repair
# took a little of it. However many mistakes there are, a right answer always scores more than a
# wrong one.


# %%
def show(episode: toolgym.EpisodeRecord) -> None:
    """Print each turn of an episode: what was written, what came back, and the reward."""
    print(episode)
    for number, turn in enumerate(episode.turns, start=1):
        codes = ", ".join([*turn["repairs"], *turn["errors"]])
        print(f"\n{number}. {turn['action']}\n   reward {turn['reward']:+.3f}  {codes}")
        print("   " + turn["observation"][:300].replace("\n", "\n   "))


mine = toolgym.EpisodeRecord.of(env.unwrapped.episode, "sqlgym/Explore-v0")
show(mine)

# %% [markdown]
# ## How others play
#
# Every environment has an expert. It knows the gold query, reads the answer from the result, and
# makes as few calls as an honest agent needs. This is the same task, played by it:

# %%
expert = rollout.play("sqlgym/Explore-v0", "expert", task_id="mountain_huts-039")
show(expert)

# %% [markdown]
# And this is what it comes to over twenty tasks, beside a policy that makes valid calls at random.
# An evaluation has its figures, with the 95 % interval of the accuracy.

# %%
evaluations = {
    policy: toolgym.evaluate("sqlgym/Explore-v0", policy, n=20) for policy in ("expert", "random")
}
evaluations["expert"]

# %%
evaluations["random"]

# %% [markdown]
# One of its episodes, from beginning to end:

# %%
show(evaluations["random"].records[0])

# %% [markdown]
# ## Where to go from here
#
# - [A database of your own](own_database.py): any SQLite file becomes such an environment.
# - [The null wall](../lab/null_wall.py): what happens if the calls above are not repaired.
# - [Train the tiny model](train_and_report.py): a language model learns to do what you just did.
