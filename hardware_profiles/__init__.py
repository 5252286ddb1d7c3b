"""Machine profiles as TOML files; data only."""
