"""What tests share with each other and with the programs in benchmarks/."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
