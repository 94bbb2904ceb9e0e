"""Episodes over the Model Context Protocol, played by any MCP host and scored by the environment.

`toolgym mcp ENV_ID` serves one episode over stdin and stdout, or many over HTTP on the loopback
interface, each under its own id. The tools of the environment are the tools of the server. The
question is the server's prompt `task`, and the score is its resource `toolgym://episode/result`.

`server` contains the handlers of one episode, and `http` serves many episodes with access checks.
Both modules need the extra `mcp`; importing this package does not.
"""
