"""Carbon models of manufacturing and operating hardware, in kg of carbon dioxide equivalents."""
