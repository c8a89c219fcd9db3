"""What forecasts say, as reports. Pure."""
