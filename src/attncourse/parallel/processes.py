"""Processes of this machine that work together, and end together."""

import os
import pickle
import socket
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import start_processes

from attnlib.checks import require_number, require_positive_int

TIMEOUT = 60.0  # seconds for which one process waits for the others
GRACE = 1.0  # seconds that the others have to end by themselves once one has failed


def run_in_processes(
    work: Callable[..., Any], processes: int, *arguments: Any, timeout: float = TIMEOUT
) -> list[Any]:
    """Call a function in several processes at once, and return what each one returned.

    In each of them `torch.distributed` is ready, over gloo, with one thread. They are spawned, as
    notebooks and Windows need it; a script calls this below `if __name__ == "__main__":`. PyTorch's
    `start_processes` watches over them: once one fails, all are ended. One that stands still lets
    the others fail, since all wait for each other at the end.

    Args:
        work: a function of a module, so that another process can import it.
        processes: how many.
        *arguments: of `work`, the same in all processes; they are pickled, and so are results.
        timeout: for how many seconds a process waits for the others before it gives up.

    Raises:
        TypeError, ValueError: another number of processes or seconds.
        ProcessException: of torch.multiprocessing.spawn, with the traceback of a process that
            raised an error or waited in vain, or the signal or exit status of one that died.
    """
    require_positive_int("processes", processes)
    require_number("timeout", timeout)
    if not 0 < timeout < 1e6:
        raise ValueError(f"timeout must be seconds, above 0 and below a million, got {timeout}")
    with TemporaryDirectory(prefix="attnlib-") as folder:
        started = start_processes(
            _work_in_group, (work, arguments, processes, timeout, folder), processes,
            join=False, daemon=True,
        )  # fmt: skip
        try:
            while not started.join(grace_period=GRACE):
                pass
        finally:  # after Ctrl-C some may live
            for process in started.processes:
                process.kill()
                process.join()
        files = [Path(folder, f"{rank}.pickle") for rank in range(processes)]
        return [pickle.loads(file.read_bytes()) for file in files]


def _work_in_group(
    rank: int, work: Callable[..., Any], arguments: tuple[Any, ...], processes: int, timeout: float,
    folder: str,
) -> None:  # fmt: skip
    """Do a process's share, and leave what came of it in a file."""
    torch.set_num_threads(1)
    loopback = {"lo", "lo0"} & {name for _, name in socket.if_nameindex()}
    if loopback:  # the name of this machine needn't lead to it
        os.environ.setdefault("GLOO_SOCKET_IFNAME", *loopback)
    meeting = dist.FileStore(f"{folder}/meeting", processes)  # type: ignore[attr-defined]
    dist.init_process_group(
        "gloo", rank=rank, world_size=processes, store=meeting, timeout=timedelta(seconds=timeout)
    )
    Path(folder, f"{rank}.pickle").write_bytes(pickle.dumps(work(*arguments)))
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    # Python's own end destroys objects of PyTorch in any order; now and then a thread of gloo is
    # among them, and the process aborts though all is done.
    os._exit(0)
