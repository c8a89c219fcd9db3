"""What-if: forecasts of a picture with changes and without them. Pure."""
