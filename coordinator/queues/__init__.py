"""The queues as the leader knows them: their rules, their usage, and their waiting gangs."""
