"""The version of this package, and nothing else: builds read it as text."""

__version__ = "0.1.0"
