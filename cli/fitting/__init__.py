"""Whether Ray clusters would fit now: a coordinator's state machine answers, on a picture."""
