"""The page in the browser: reads the cluster again and again, and serves what it found."""
