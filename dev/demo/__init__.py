"""Three scenes on a real control plane that show what Muster does."""
