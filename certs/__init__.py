"""Issues the certificates of the HTTPS servers, and publishes their authorities."""
