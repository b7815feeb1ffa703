"""A server that runs until it is stopped."""

from __future__ import annotations

import gc
import socket
from contextlib import ExitStack, closing
from pathlib import Path

from noregret.belief.numerics.threads import one_thread
from noregret.terminal import printable, say
from noregret.tune.service.choosing.choosers import Chooser
from noregret.tune.service.choosing.studies import Studies
from noregret.tune.service.http.app import application
from noregret.tune.service.http.connections import Server, configuration
from noregret.tune.service.http.security import is_loopback
from noregret.tune.service.storing.storage import Storage
from noregret.tune.study.study import StudyError, without_password

CHOOSING = 2
"""How many processes choose what to measure: with the second one, half of the studies do not wait for a long fit."""


def serve(url: str, host: str, port: int, token: str | None, rate: float | None, lease: float) -> None:
    """Serve the studies of a storage until interrupted.

    Raises
    ------
    StudyError
        If the storage cannot be used, the address is taken, or it can be reached by others and there is no token.
    """
    if token is None and not is_loopback(host):
        raise StudyError(
            f"--host {host} can be reached from other machines, so a token is needed: --token-file FILE, or the "
            "environment variable NOREGRET_TOKEN"
        )
    with ExitStack() as ending:
        choosers = [ending.enter_context(closing(Chooser())) for _ in range(CHOOSING)]  # first: they inherit nothing
        fitter = ending.enter_context(closing(Chooser()))
        door = ending.enter_context(_listening(host, port))
        app = application(Studies(Storage(url, Path.cwd()), lease, choosers, fitter), token, rate)
        say(
            f"{_address(host, door)}  (end with Ctrl-C)",
            f"studies are in {printable(without_password(url))}; {_who(host, token)}",
        )
        gc.freeze()  # what is there now stays: no need to look through it again and again
        with one_thread():  # studies share the machine; products of their size are no faster on more
            Server(configuration(app)).run(sockets=[door])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise StudyError(f"--host {host} --port {port} cannot be used: {error.strerror}: choose another one") from error


def _address(host: str, door: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{door.getsockname()[1]}"


def _who(host: str, token: str | None) -> str:
    if token is None:
        return "every program on this machine may use it, without a token"
    machines = "only this machine" if is_loopback(host) else "other machines"
    return f"{machines} may use it, with the token: what they send is not encrypted on the way"
