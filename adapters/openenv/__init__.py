"""Environments behind OpenEnv: a server of many sessions, and the client that a trainer plays with.

`toolgym serve ENV_ID` is the server. A session is a WebSocket, an action is the whole message of a
model, and a client chooses the task of each episode and nothing else. `toolgym export openenv`
writes the same as a folder that a Hub or a container takes.

Read `models` (what goes over the wire), then `environment` (one session), `catalogue` (the tasks),
`server`, and `client`. They need the extra `openenv`; importing this package does not.
"""
