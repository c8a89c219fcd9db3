"""The webhook: puts Muster's gate on the pods of gangs."""
