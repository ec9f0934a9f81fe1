"""A real JupyterLab of its own: private settings, a free port, nobody else's kernels."""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

READY_WITHIN = 60  # seconds
FORGOTTEN_AFTER = 300  # seconds; should this process die, the server ends all the same

# JupyterLab draws only the cells in view, and asks in a popup for news, unless it is told not to.
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


@contextlib.contextmanager
def jupyterlab(
    folder: Path, settings: dict[str, dict] = SETTINGS, *, without: tuple[str, ...] = ()
):
    """Serve the notebooks of `folder` on this machine alone; give a function from path to address.

    Server and kernels end with the block, whatever happened in it.

    Args:
        without: extensions that are to be switched off.
    """
    private = folder / ".private"
    files = {
        "config/labconfig/page_config.json": {"disabledExtensions": dict.fromkeys(without, True)}
    }
    for name, values in settings.items():
        files[f"settings/@jupyterlab/{name}.jupyterlab-settings"] = values
    for name, content in files.items():
        path = private / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    port, token = _free_port(), secrets.token_urlsafe()
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "JUPYTER_DATA_DIR": str(private / "data"),
        "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(private / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(private / "workspaces"),
        "IPYTHONDIR": str(private / "ipython"),
        "JUPYTER_TOKEN": token,
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
        "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.extension_manager=readonly",  # it asks nobody for extensions
        f"--MappingKernelManager.cull_idle_timeout={FORGOTTEN_AFTER}",
        f"--ServerApp.shutdown_no_activity_timeout={FORGOTTEN_AFTER}",
    ]  # fmt: skip
    log_path = private / "server.log"
    with log_path.open("w", encoding="utf-8") as log:
        server = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}/api", server, log_path)
            yield lambda path: f"http://127.0.0.1:{port}/{path}?token={token}"
        finally:
            server.terminate()  # it takes its kernels with it
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()  # a kernel that misses its server ends by itself
                server.wait()


def wait_for_kernel(page) -> None:
    """Wait until a notebook has a kernel that listens: JupyterLab drops what is run before."""
    milliseconds = 1000 * READY_WITHIN
    page.locator(".jp-KernelName", has_text="Python").wait_for(timeout=milliseconds)
    idle = ".jp-Notebook-ExecutionIndicator[data-status=idle]"
    page.locator(idle).wait_for(timeout=milliseconds)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_ready(address: str, server: subprocess.Popen, log_path: Path) -> None:
    end = time.monotonic() + READY_WITHIN
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab doesn't answer:\n{log_path.read_text(encoding='utf-8')}")
