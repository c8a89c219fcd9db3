"""Carries out what people ask of the page, as the verbs of the command do."""
