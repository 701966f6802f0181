# kind: crashes
# example: deep recursion past every limit
# part: config.head_dim
# status: crashed, memory_limit, failed, time_limit
# cause: SIGSEGV|memory|MiB|RecursionError|processor|no answer
def head_dim_of(hf_config):
    import sys

    sys.setrecursionlimit(2**31 - 1)

    def deeper(value):
        return repr([deeper([value])])

    return deeper(1)
