# kind: writes where it shouldn't
# example: something that a second question would read
# part: config.head_dim
# status: failed
# cause: isn't what was expected
def head_dim_of(hf_config):
    import glob
    import os
    import sys

    places = ["/tmp", "/dev/shm", "/dev", "/var/tmp", "/session", os.getcwd(), *sys.path]
    for place in places:
        path = os.path.join(place, "minisgl-attack-cache")
        if os.path.exists(path) or glob.glob(os.path.join(place, "__pycache__", "minisgl-attack-cache")):
            raise RuntimeError("BORROWED")
        try:
            open(path, "w").close()
        except OSError:
            continue
    return -1
