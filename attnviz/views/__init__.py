"""What to show: records and measurements in, reports out. Knows neither renderers nor models."""
