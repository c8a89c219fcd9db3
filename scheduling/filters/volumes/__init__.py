"""The plugins of volumes, and how claims restrict the pods that mount them."""
