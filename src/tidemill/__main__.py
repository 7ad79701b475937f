"""``python -m tidemill`` is the command ``tidemill``."""

from tidemill.cli.app import app

if __name__ == "__main__":
    app(prog_name="tidemill")
