"""A progress bar that leaves no thread behind."""

from tqdm import auto


class tqdm(auto.tqdm):
    """Show progress as ``tqdm.auto`` does, without the watching thread that tqdm starts, also for a disabled bar."""

    monitor_interval = 0
