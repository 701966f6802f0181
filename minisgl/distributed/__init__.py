"""Tensor parallelism: which rank this process is, and the two collectives the layers need."""

from typing import TYPE_CHECKING

from minisgl._lazy import on_first_use
from minisgl.distributed.info import TPInfo, get_tp_info, set_tp_info, use_tp_info
from minisgl.distributed.sizes import (
    check_tp_size,
    local_num_kv_heads,
    local_num_qo_heads,
    local_size,
    supported_tp_sizes,
)

if TYPE_CHECKING:
    from minisgl.distributed.communication import all_gather, all_reduce
    from minisgl.distributed.launch import close_tensor_parallel, init_tensor_parallel

__all__ = [
    "TPInfo",
    "all_gather",
    "all_reduce",
    "check_tp_size",
    "close_tensor_parallel",
    "get_tp_info",
    "init_tensor_parallel",
    "local_num_kv_heads",
    "local_num_qo_heads",
    "local_size",
    "set_tp_info",
    "supported_tp_sizes",
    "use_tp_info",
]
# The rest can be asked about without torch.
__getattr__ = on_first_use(
    __name__,
    {
        **dict.fromkeys(("all_gather", "all_reduce"), "communication"),
        **dict.fromkeys(("close_tensor_parallel", "init_tensor_parallel"), "launch"),
    },
)
