"""Small widgets, one a file, that draw the answer to one question."""
