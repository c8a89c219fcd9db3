"""Steps of gangs whose source Muster suspends and resumes, or another program as the Gang says."""
