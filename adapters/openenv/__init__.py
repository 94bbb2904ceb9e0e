"""Environments served over OpenEnv, and the client for trainers.

`toolgym serve ENV_ID` is the server. A session is a WebSocket, and an action is a complete message
of the model. A client can only select the task of each episode. `toolgym export openenv` writes
such a server as a folder for a container or a hub.

- `models` defines the messages.
- `environment` implements a session.
- `catalogue` holds the tasks.
- `server` and `client` implement the two ends of the connection.

These modules need the extra `openenv`; importing this package does not.
"""
