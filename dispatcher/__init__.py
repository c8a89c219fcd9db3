"""Sends gangs to one of several clusters.

`protocol` has the rules by which a gang runs on one of them, once; coordinators of members go by
them, too. All that talks to API servers is in `shell`, the other modules are pure.
"""
