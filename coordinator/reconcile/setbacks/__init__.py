"""The steps that end what went wrong, count it, and have the gang wait after others."""
