"""Steps of gangs whose source Muster suspends and resumes, itself or by way of another program."""
