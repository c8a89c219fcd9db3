"""Objects of several clusters: what a member offers, and which members there are. Pure."""
