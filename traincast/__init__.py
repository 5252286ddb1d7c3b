"""Forecasts distributed training runs: the public interface and the command line."""
