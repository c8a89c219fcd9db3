"""What KubeRay's objects mean to Muster. Pure."""
