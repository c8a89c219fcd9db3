"""What manager and members write, in which order, so that no gang ever runs on two of them."""
