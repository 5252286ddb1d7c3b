"""What joins units: one kind of fabric a file."""
