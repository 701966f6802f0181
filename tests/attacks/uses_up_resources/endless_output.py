# kind: uses up resources
# example: endless output
# part: config.head_dim
# status: output_limit
# cause: printed
def head_dim_of(hf_config):
    while True:
        print("all tests passed")
