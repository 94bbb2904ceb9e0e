"""Environments served over OpenEnv, and the client for trainers.

`toolgym serve ENV_ID` starts the server. Each session uses one WebSocket connection, and each
action is a complete message of the model. A client can only select the task of each episode.
`toolgym export openenv` writes such a server as a folder for a container or a hub.

`models` defines the messages, `environment` implements a session, and `catalogue` contains the
tasks. `server` and `client` implement the two ends of the connection.

These modules need the extra `openenv`; importing this package does not.
"""
