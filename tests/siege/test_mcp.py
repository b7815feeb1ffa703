"""More of `tests.studies.test_mcp`, nightly."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.studies.test_mcp import X, agent, folder, over_stdio, studies


def test_what_was_told_survives_a_kill(tmp_path):
    with over_stdio(tmp_path) as agent:
        agent("create_study", name="q", space=X)
        first, second = agent("ask", study="q", count=2)["trials"]
        agent("tell", study="q", id=first["id"], value=0.1 + 0.2)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    with over_stdio(tmp_path) as agent:
        found = agent("describe", study="q")
        assert found["states"] == {"running": 1, "done": 1, "failed": 0}
        assert found["pending"] == [second]
        agent("tell", study="q", id=second["id"], value=1.0)
        assert agent("tell", study="q", id=first["id"], value=0.1 + 0.2)["id"] == first["id"]  # counts once
        assert agent("describe", study="q")["states"]["done"] == 2


def test_only_messages_go_to_standard_output(tmp_path):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_studies"}},
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "noregret", "mcp"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for message in messages:
            print(json.dumps(message), file=process.stdin, flush=True)
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait() == 0
    assert [line["id"] for line in lines] == [1, 2]
    assert lines[1]["result"]["structuredContent"]["studies"] == []
