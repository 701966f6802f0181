"""The exceptions that minisgl raises on bad input; all of them are ``ValueError``.

- ``MinisglError``: any bad input; to catch it is to catch those below
  - ``ConfigError``: a config.json that can't be read or can't be computed
  - ``CheckpointError``: a checkpoint folder whose files can't be trusted

Each message says what is wrong (with names and values), what was expected, and what to do.
"""


class MinisglError(ValueError):
    """Report bad input to minisgl. Catch this to catch every error below."""


class ConfigError(MinisglError):
    """Report a model config that is missing, unusable, or turns on something not computed here."""


class CheckpointError(MinisglError):
    """Report a checkpoint that is missing, damaged, incomplete or inconsistent."""
