"""The coordinator: which gangs start now, and where does each of their pods go?

Events come in (what the watches saw, how writes ended, that time has passed), one pure state
machine turns them into actions (writes to the API server), and an executor carries those out
and reports back with events. Only `shell` knows asyncio and the network.
"""
