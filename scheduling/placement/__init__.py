"""Where the pods of a gang go together: every pod has a node, or none has."""
