"""Emissions of making and running hardware, in kilograms of carbon dioxide equivalents."""
