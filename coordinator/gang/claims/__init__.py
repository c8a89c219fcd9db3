"""Device claims of a gang's pods: each pod's claims, their quota, the check between waves."""
