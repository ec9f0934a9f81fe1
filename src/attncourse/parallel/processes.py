"""Processes of this machine that work together, and end together."""

import os
import pickle
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing import connection, forkserver
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist
from torch import multiprocessing
from torch.multiprocessing.spawn import start_processes

from attncourse.training.progress import interrupts_noted
from attnlib.checks import require_number, require_positive_int

TIMEOUT = 60.0  # seconds for which one process waits for another


class ProcessEndedError(RuntimeError):
    """A process ended, or stood still, before its work was done. The others were ended, too."""


def together(
    work: Callable[..., Any], processes: int, *arguments: Any, timeout: float = TIMEOUT
) -> list[Any]:
    """Call a function in several processes at once, and return what each one returned.

    In each of them `torch.distributed` is ready, over gloo, with one thread. They meet in a file
    and talk over this machine's own loopback, at ports that the system chooses. Whatever happens,
    none is left behind: where one dies, raises or stands still, on Ctrl-C, and where the process
    that called this one dies, all are ended.

    Args:
        work: a function of a module, so that another process can import it.
        processes: how many.
        *arguments: of `work`, the same in all processes; they are pickled, and so are results.
        timeout: for how many seconds a process waits for the others before it gives up.

    Raises:
        TypeError, ValueError: another number of processes or seconds.
        ProcessEndedError: a process died, raised (its traceback is told) or stood still.
    """
    require_positive_int("processes", processes)
    require_timeout(timeout)
    with TemporaryDirectory(prefix="attnlib-") as folder:
        begun: list[Any] = []
        try:
            with interrupts_noted():  # Ctrl-C in between would leave some that nobody knows of
                begun += start_processes(
                    _begin, (work, arguments, processes, timeout, folder), processes,
                    join=False, daemon=True, start_method=_method(),
                ).processes  # fmt: skip
            _wait(begun, timeout, folder)
            return [_outcome(folder, rank) for rank in range(processes)]
        finally:
            for process in begun:
                process.kill()
                process.join()


def number_of(processes: int | None) -> int:
    """Return how many processes there will be: those of torchrun, if it has started this one.

    Raises:
        TypeError, ValueError: no number of at least 1, or another one than torchrun's.
    """
    if processes is not None:
        require_positive_int("processes", processes)
    if not dist.is_torchelastic_launched():
        return processes or 2
    launched = int(os.environ["WORLD_SIZE"])
    if processes not in (None, launched):
        raise ValueError(
            f"processes must be left out below torchrun, which has started {launched}, got "
            f"{processes}"
        )
    return launched


def from_first(
    work: Callable[..., Any], processes: int, *arguments: Any, timeout: float = TIMEOUT
) -> Any:
    """Return what the first of several processes returns, see `together`.

    Where torchrun has started this one, it and its neighbors are those processes; torchrun itself
    watches over them, and each gets what its own call returns.
    """
    if not dist.is_torchelastic_launched():
        return together(work, processes, *arguments, timeout=timeout)[0]
    require_timeout(timeout)
    with _group(timeout):
        return work(*arguments)


def require_timeout(timeout: float) -> None:
    """Raise unless one can wait so long."""
    require_number("timeout", timeout)
    if not 0 < timeout < 1e6:
        raise ValueError(f"timeout must be seconds, above 0 and below a million, got {timeout}")


@contextmanager
def _group(timeout: float, **meeting: Any) -> Iterator[None]:
    """Have `torch.distributed` ready inside, where the meeting is told by torchrun if not here."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout), **meeting)
    yield
    dist.destroy_process_group()  # after an error it might wait for the others


def _method() -> str:
    """Return how processes are started: forked by a server, if there can be one, which is ready.

    It imports torch once, so that only the first processes wait for that. Started while Ctrl-C is
    ignored, it leaves it to this process to say something.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    multiprocessing.set_forkserver_preload(["attncourse.parallel"])
    if threading.current_thread() is not threading.main_thread():
        return "forkserver"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
    return "forkserver"


def _begin(
    rank: int, work: Callable[..., Any], arguments: tuple[Any, ...], processes: int, timeout: float,
    folder: str,
) -> None:  # fmt: skip
    """Do a process's share, and leave what came of it in a file."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends it at once, even while it waits; no words
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    if not Path(folder).is_dir():
        return  # given up before it began
    loopback = {"lo", "lo0"} & {name for _, name in socket.if_nameindex()}
    if loopback:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", *loopback)
    meeting = {"init_method": f"file://{folder}/meeting", "rank": rank, "world_size": processes}
    try:
        with _group(timeout, **meeting):
            outcome = work(*arguments)
        packed = pickle.dumps(outcome)
    except Exception:
        (Path(folder) / f"{rank}.txt").write_text(traceback.format_exc(), encoding="utf-8")
        sys.exit(1)
    _file(folder, rank).write_bytes(packed)


def _end_with_parent(folder: str) -> None:
    """End this process as soon as the one that started it has ended, whatever it ended by."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)


def _outcome(folder: str, rank: int) -> Any:
    return pickle.loads(_file(folder, rank).read_bytes())


def _file(folder: str, rank: int) -> Path:
    """Return where a process leaves what came of its work."""
    return Path(folder) / f"{rank}.pickle"


def _wait(processes: list[Any], timeout: float, folder: str) -> None:
    """Return when all are done; once one is, the others have this many seconds."""
    waiting = {process.sentinel: rank for rank, process in enumerate(processes)}
    limit = None
    while waiting:
        left = None if limit is None else limit - time.monotonic()
        ended = connection.wait(waiting, left)
        if not ended:
            raise ProcessEndedError(
                f"{_named(waiting.values())} still wasn't done {timeout:g} seconds after another"
            )
        limit = limit or time.monotonic() + timeout
        failed: dict[int, int] = {}
        for sentinel in ended:
            rank = waiting.pop(sentinel)
            processes[rank].join()
            if processes[rank].exitcode or not _file(folder, rank).exists():
                failed[rank] = processes[rank].exitcode
        if failed:
            raise ProcessEndedError(_why(failed, folder))


def _why(failed: dict[int, int], folder: str) -> str:
    """Say which process ended the work: one that was killed, else the first that raised."""
    told = {rank: Path(folder) / f"{rank}.txt" for rank in failed}
    killed = [rank for rank, status in failed.items() if status < 0]
    if killed:
        name = signal.Signals(-failed[killed[0]]).name
        return f"process {killed[0]} was ended by {name} before its work was done"
    raised = [rank for rank in failed if told[rank].exists()]
    if not raised:
        rank, status = next(iter(failed.items()))
        return f"process {rank} ended with status {status} before its work was done"
    rank = min(raised, key=lambda one: told[one].stat().st_mtime_ns)
    return f"process {rank} raised an error:\n{told[rank].read_text(encoding='utf-8').rstrip()}"


def _named(ranks: Any) -> str:
    return " and ".join(f"process {rank}" for rank in ranks)
