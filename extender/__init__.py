"""The scheduler extender: keeps reserved room from others, and packs pods that need devices."""
