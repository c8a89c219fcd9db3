"""The scheduler extender: guards reserved room, and packs pods."""
