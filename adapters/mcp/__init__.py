"""Episodes over the Model Context Protocol. Any MCP host can play, and the environment scores.

`toolgym mcp ENV_ID` serves one episode over stdin and stdout, or many over HTTP on the loopback
interface, each under its own id. The tools of the environment are the tools of the server. The
question is its prompt `task`, and the score its resource `toolgym://episode/result`.

`server` has the handlers of one episode, and `http` serves many episodes with access checks. Both
need the extra `mcp`; importing this package does not.
"""
