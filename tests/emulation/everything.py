"""Reads all that emulated ranks need, in the process that they are forked from."""

import gc
from importlib import import_module

from calibrate.measure_worker import preload

for module in ("calibrate.measure_rendezvous", "calibrate.supervise", "traincast.cli"):
    import_module(module)
preload()
gc.freeze()  # What is never freed is not to be looked at, and copied, in every fork.
