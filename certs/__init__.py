"""Issues the certificates of the HTTPS servers, and makes them known."""
