"""Guards the devices that gangs will claim."""
