"""Launch files of training frameworks: written for a layout, and read back as a scenario."""

from planner.launch.exporting import export
from planner.launch.importing import import_files
from planner.launch.records import Imported, ImportOptions, Launch, LaunchFile, Tool

__all__ = [
    "ImportOptions",
    "Imported",
    "Launch",
    "LaunchFile",
    "Tool",
    "export",
    "import_files",
]
