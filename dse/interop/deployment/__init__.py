"""Files of compressed models for other programs: inference engines and training libraries."""
