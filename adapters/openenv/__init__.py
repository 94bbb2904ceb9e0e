"""Environments served over OpenEnv, and the client with which a trainer plays.

`toolgym serve ENV_ID` is the server. A session is a WebSocket, an action is the whole message of a
model, and a client selects the task of each episode and nothing else. `toolgym export openenv`
writes the same as a folder for a container or a Hub.

Read `models` (what is sent), then `environment` (one session), `catalogue` (the tasks), `server`,
and `client`. They need the extra `openenv`; importing this package does not.
"""
