"""The HTTP server that `toolgym serve` and `toolgym mcp` share, with limits on who may do what.

`guard` needs starlette and uvicorn, which the extras of these commands install; importing this
package does not.
"""
