"""From objects to reports: pure, so that a report can be checked without a cluster."""
