"""The command line in this process: as fast as a function, and just as it is in a terminal."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from typing import NamedTuple
from unittest import mock

from linmdp.cli import main


class Done(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


def linmdp(*arguments: str) -> Done:
    """`linmdp ARGUMENTS`."""
    out, err, before = io.StringIO(), io.StringIO(), signal.getsignal(signal.SIGTERM)
    status = 0
    with (
        mock.patch.object(sys, "argv", ["linmdp", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        finally:
            signal.signal(signal.SIGTERM, before)
    return Done(status, out.getvalue(), err.getvalue())
