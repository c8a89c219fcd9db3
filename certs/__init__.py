"""Who issues the certificates that the HTTPS servers of Muster use, and who makes them known?"""
