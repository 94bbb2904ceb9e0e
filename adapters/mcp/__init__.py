"""Episodes behind the Model Context Protocol: any MCP host plays, the environment judges.

`toolgym mcp ENV_ID` serves one episode over stdin and stdout, or many over HTTP on the loopback
interface, each under an id of its own. The tools of the environment are the tools of the server,
the question is its prompt `task`, the score its resource `toolgym://episode/result`.

Read `server` (one episode and the handlers), then `http` (many of them, and what may reach them).
Both need the extra `mcp`; importing this package does not.
"""
