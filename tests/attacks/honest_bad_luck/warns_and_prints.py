# kind: honest bad luck
# example: right code that prints, logs and warns on both streams
# part: config.kv_bytes
# status: passed
# base: reference
# points: full
import logging
import sys
import warnings

_right = kv_bytes_per_token


def kv_bytes_per_token(config, dtype):
    print("looking at", config)
    print("a library's warning", file=sys.stderr)
    warnings.warn("deprecated")
    logging.getLogger("some.library").warning("careful")
    return _right(config, dtype)
