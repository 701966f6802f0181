# kind: uses up resources
# example: an answer nested a thousand deep
# part: config.head_dim
# status: refused
# cause: nested deeper
def head_dim_of(hf_config):
    answer = []
    for _ in range(1000):
        answer = [answer]
    return answer
