"""The plugins of volumes, and what claims mean to the pods that mount them."""
