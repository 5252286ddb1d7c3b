"""Where accelerators stand and what joins them: devices, links, routes and places of ranks."""
