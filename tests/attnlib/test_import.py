"""`import attnlib` stays quick."""

import subprocess
import sys


def test_importing_attnlib_stays_light():
    code = (
        "import sys, attnlib; heavy = {'matplotlib', 'anywidget', 'IPython', 'safetensors'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
