"""CustomResourceDefinitions: what they say, and how those served differ."""
