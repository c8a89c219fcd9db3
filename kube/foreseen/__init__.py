"""Works out the pods of a RayCluster before they exist, and what its namespace admits. Pure."""
