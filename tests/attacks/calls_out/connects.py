# kind: calls out
# example: connections to the host and to anywhere
# part: config.head_dim
# status: failed
# cause: isn't what was expected
def head_dim_of(hf_config):
    import socket

    for family, address in ((socket.AF_INET, ('127.0.0.1', 8888)), (socket.AF_INET, ('127.0.0.1', 22)), (socket.AF_INET, ('192.0.2.1', 80)), (socket.AF_INET6, ('::1', 8888))):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as connection:
                connection.settimeout(0.2)
                connection.connect(address)
        except OSError:
            continue
        raise RuntimeError("BORROWED")
    return -1
