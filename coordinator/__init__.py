"""The coordinator: decides which gangs start, and releases their pods to their nodes.

Events come in (what the watches saw, how writes ended, that time has passed), one pure state
machine turns them into actions (writes to the API server), and an executor carries those out
and reports back with events. Only `shell` knows asyncio and the network.
"""
