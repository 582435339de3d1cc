"""``python -m geoeval``: the command line."""

from geoeval.cli.main import run

if __name__ == "__main__":
    run()
