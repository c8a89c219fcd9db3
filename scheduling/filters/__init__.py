"""Which nodes may run a pod: a module for each plugin of kube-scheduler, named after it."""
