# kind: calls out
# example: a name is looked up
# part: config.head_dim
# status: failed
# cause: isn't what was expected
def head_dim_of(hf_config):
    import socket

    socket.setdefaulttimeout(0.2)
    try:
        socket.getaddrinfo("example.org", 80)
    except OSError:
        return -1
    raise RuntimeError("BORROWED")
