"""A local page to change a scenario and see its estimate, memory and layout map at once."""
