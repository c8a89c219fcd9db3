"""The queues as the leader knows them: their rules, what they hold, what waits in them."""
