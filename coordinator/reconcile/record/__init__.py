"""The steps that write down and tell how a gang stands: its Gang, and Events."""
