"""The version of this traceq, in a module that imports nothing."""

__version__ = "0.1.0.dev0"
