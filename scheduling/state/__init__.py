"""State kept from watch events and read as snapshots: nodes, pods, volumes, holders."""
