"""The spec of an AppWrapper: its items, their pod sets, and the terms it runs on."""
