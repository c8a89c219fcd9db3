"""What may be done to Ray clusters, jobs and queues, and what each change does. Pure."""
