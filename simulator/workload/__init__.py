"""Models and training jobs as operators with FLOPs and bytes, and their memory."""
