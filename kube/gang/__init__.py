"""What a gang is read of, whatever object that is."""
