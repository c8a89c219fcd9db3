"""What-if: forecasts with changes and without. Pure."""
