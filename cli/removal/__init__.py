"""What of a cluster is Muster's, and what it takes to take it away; pure."""
