"""Environments served over OpenEnv, and the client for trainers.

`toolgym serve ENV_ID` is the server. A session is a WebSocket, and an action is the whole message
of a model. A client can only select the task of each episode. `toolgym export openenv` writes the
same as a folder for a container or a hub.

- `models` defines the messages.
- `environment` is one session.
- `catalogue` holds the tasks.
- `server` and `client` are the two ends.

These modules need the extra `openenv`; importing this package does not.
"""
