# kind: calls out
# example: questions are sent away by UDP, over raw sockets and through a proxy's variable
# part: config.head_dim
# status: failed
# cause: isn't what was expected
def head_dim_of(hf_config):
    import os
    import socket

    for family, kind, address in (
        (socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)),
        (socket.AF_INET, socket.SOCK_RAW, ("192.0.2.1", 0)),
        (socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 53)),
    ):
        try:
            with socket.socket(family, kind) as connection:
                connection.sendto(b"question", address)
        except OSError:
            continue
        raise RuntimeError("BORROWED")
    if any(name.lower().endswith("_proxy") for name in os.environ):
        raise RuntimeError("BORROWED")
    return -1
