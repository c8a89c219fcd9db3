"""Claims of devices: those of the pods of a gang, their quota, and their slots between waves."""
