"""Helpers that belong to no layer: reading Hugging Face folders, the dtype context, division."""

from typing import TYPE_CHECKING

from minisgl._lazy import on_first_use

if TYPE_CHECKING:
    from minisgl.utils.division import div_ceil, div_even
    from minisgl.utils.dtype import dtype_name, parse_dtype, torch_dtype
    from minisgl.utils.hf import cached_load_hf_config, download_hf_weight

__all__ = [
    "cached_load_hf_config",
    "div_ceil",
    "div_even",
    "download_hf_weight",
    "dtype_name",
    "parse_dtype",
    "torch_dtype",
]
__getattr__ = on_first_use(
    __name__,
    {
        **dict.fromkeys(("cached_load_hf_config", "download_hf_weight"), "hf"),
        **dict.fromkeys(("div_ceil", "div_even"), "division"),
        **dict.fromkeys(("dtype_name", "parse_dtype", "torch_dtype"), "dtype"),
    },
)
