"""Which fixtures and settings do all tests share?"""

from hypothesis import settings

pytest_plugins = ["testbed.pytest_plugin"]

# How long an example takes says something of the machine, not of the code.
settings.register_profile("muster", deadline=None)
settings.load_profile("muster")
