"""What kube-scheduler asks and how it is answered, in bytes."""
