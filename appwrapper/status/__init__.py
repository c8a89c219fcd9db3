"""The status of an AppWrapper, in the words of its generation."""
