"""What making and running hardware emits, in kilograms of carbon dioxide equivalents."""
