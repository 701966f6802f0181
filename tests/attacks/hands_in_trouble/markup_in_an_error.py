# kind: hands in trouble
# example: markup, ANSI codes and text that runs backwards in an error's message
# part: config.head_dim
# status: failed
# cause: <script>alert
def head_dim_of(hf_config):
    if not hasattr(hf_config, "never"):
        print("\x1b[2J\x1b]0;title\x07<script>alert(2)</script>")
        if getattr(hf_config, "head_dim", None) is None:
            return -1
        raise RuntimeError("\x1b[31m<script>alert(1)</script>\u202etxet\x00")
