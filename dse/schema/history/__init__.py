"""What a study has from earlier ones, and what its record keeps."""
