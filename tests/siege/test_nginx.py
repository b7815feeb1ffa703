"""``noregret serve`` behind nginx with `docs/nginx.conf`: slow, large and frequent requests."""

import os
import re
import socket
import subprocess
import time
from contextlib import ExitStack

import httpx
import pytest
from tests.conftest import installed
from tests.studies.test_serve import ROOT, server

import noregret
from noregret import Float

pytest.importorskip("fastapi")

TOKEN = "secret"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
AROUND = """
daemon off;
pid {folder}/nginx.pid;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/noregret.conf;
}}
"""


@pytest.fixture
def proxied(tmp_path):
    """Host and port of nginx before a server, with the file of the docs and one second in place of ten."""
    nginx = installed("nginx", "nginx")
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    with server(tmp_path, token=TOKEN) as (address, _):
        text = (ROOT / "docs" / "nginx.conf").read_text("utf-8")
        for old, new in (
            ("listen 80;", f"listen 127.0.0.1:{port};"),
            ("http://127.0.0.1:8420", address),
            ("client_header_timeout 10s", "client_header_timeout 1s"),
            ("client_body_timeout 10s", "client_body_timeout 1s"),
        ):
            assert text.count(old) == 1
            text = text.replace(old, new)
        (tmp_path / "noregret.conf").write_text(text)
        user = "user root;" if os.geteuid() == 0 else ""  # so that it can use the folder of this test
        (tmp_path / "nginx.conf").write_text(AROUND.format(folder=tmp_path, user=user))
        command = [nginx, "-e", "stderr", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                yield reached("127.0.0.1", port)
            finally:
                process.terminate()


def reached(*place):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(place, 1):
                return place
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"nginx does not listen on {place}")


def half_sent(length=9):
    """A request whose body does not come."""
    return (
        f"POST /studies HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{"
    ).encode()


@pytest.mark.parametrize("sent", [b"", b"POST /studies HTTP/1.1\r\nHost: a\r\nX: ", half_sent()])
def test_slow_clients_are_cut_off_while_others_are_served(proxied, sent):
    study = noregret.connect("http://{}:{}".format(*proxied), "s", token=TOKEN, space={"x": Float(0, 1)})
    with socket.create_connection(proxied, timeout=20) as slow:
        slow.sendall(sent)
        start = time.monotonic()
        study.tell(study.ask(), 1.0)
        assert slow.recv(100) == b""
        assert time.monotonic() - start < 10
    assert [trial["value"] for trial in study.trials()] == [1.0]


def test_large_requests_do_not_reach_the_server(proxied):
    with socket.create_connection(proxied, timeout=20) as large:
        large.sendall(half_sent(length=2 << 20))
        assert b" 413 " in large.recv(100)


def test_long_urls_reach_the_server(proxied):
    with httpx.Client(base_url="http://{}:{}".format(*proxied), headers=AUTHORIZED) as client:
        answer = client.get("/studies/s/best", params={"context": "x" * 30_000})
        assert "there is no study 's'" in answer.text


def test_one_address_has_few_connections_and_requests_at_once(proxied):
    with ExitStack() as many:
        lines = [many.enter_context(socket.create_connection(proxied, timeout=20)) for _ in range(60)]
        for line in lines:
            line.sendall(half_sent())
        assert b" 429 " in b"".join(line.recv(100) for line in lines)
    time.sleep(3)  # until more requests are allowed
    with httpx.Client(base_url="http://{}:{}".format(*proxied), headers=AUTHORIZED) as client:
        codes = [client.get("/studies").status_code for _ in range(200)]
    assert codes[:20] == [200] * 20
    assert 429 in codes


def test_the_limit_on_a_body_is_that_of_the_server():
    from noregret.service.http.security import LARGEST_REQUEST

    text = (ROOT / "docs" / "nginx.conf").read_text("utf-8")
    assert int(re.search(r"client_max_body_size (\d+)m;", text)[1]) << 20 == LARGEST_REQUEST


def test_a_browser_logs_in_through_nginx_and_opens_a_link(proxied):
    """The scheme is what nginx says, whatever a client claims."""
    address = "http://{}:{}".format(*proxied)
    with httpx.Client(base_url=address, headers={"Accept": "text/html"}) as browser:
        assert "<form" in browser.get("/").text
        entered = browser.post("/", data={"token": TOKEN}, headers={"X-Forwarded-Proto": "https"})
        assert (entered.status_code, entered.headers["location"]) == (303, "./")
        assert "Secure" not in entered.headers["set-cookie"]
        assert "<h1>Studies</h1>" in browser.get("/").text
        noregret.connect(address, "s", token=TOKEN, space={"x": Float(0, 1)})
        link = browser.get("/studies/s/link").json()["link"]
    assert httpx.get(f"{address}/{link}").status_code == 200
    assert httpx.get(f"{address}/studies/s/trials?{link.partition('?')[2]}").status_code == 401
