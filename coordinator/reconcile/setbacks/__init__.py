"""The steps that stop a failed gang, count the failure, and put the gang behind others."""
