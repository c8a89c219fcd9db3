"""Sends gangs to one of several clusters.

`protocol` has the rules by which a gang runs on one cluster, once; coordinators of members follow
the same rules. `shell` has all code that talks to API servers, and the other modules are pure.
"""
