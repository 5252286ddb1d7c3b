"""How each Hugging Face architecture's `config.json` is read; one entry an architecture."""
