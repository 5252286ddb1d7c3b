"""Steps as traces that other simulators read, and their traces as steps."""
