"""What servers of episodes have in common: who may reach them, with how much, and for how long.

Every server here listens on the loopback interface unless it is told otherwise, and each request
passes `guard` before the framework behind it sees anything. It needs anyio, starlette and uvicorn,
which the extras of these servers bring; importing this package does not.
"""
