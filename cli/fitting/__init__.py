"""Would these Ray clusters fit now? A coordinator's state machine answers, on a picture."""
