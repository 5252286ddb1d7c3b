"""Tests of traincast; the folders mirror the packages."""
