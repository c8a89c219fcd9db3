"""Parts of a pod shape: its requests, its host ports, what one moment adds, and its key."""
