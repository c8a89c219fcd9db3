"""Works out the pods of a RayCluster before they exist, and what a namespace says to them. Pure."""
