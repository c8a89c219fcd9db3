"""Which fixtures do all tests share?"""

pytest_plugins = ["testbed.pytest_plugin"]
