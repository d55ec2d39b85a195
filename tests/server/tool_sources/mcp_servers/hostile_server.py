"""An MCP server over stdio that behaves badly, as it is told. Run as a program, without any library.

Usage: hostile_server.py LOG [BEHAVIOUR]: what it receives is appended to the file LOG, a line of JSON each.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

LOG = Path(sys.argv[1])
BEHAVIOUR = sys.argv[2] if len(sys.argv) > 2 else ""
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
LATE: dict[Any, str] = {}
NAMES = [
    "echo",
    "die",
    "leave_child",
    "hang",
    "flood",
    "huge",
    "huge_id_last",
    "rubbish",
    "change",
    "ask",
    "no_answer",
    "late",
]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def reply(request: dict[str, Any], result: Any) -> None:
    send({"id": request["id"], "result": result})


def say(request: dict[str, Any], text: str) -> None:
    reply(request, {"content": [{"type": "text", "text": text}]})


def tools() -> list[dict[str, Any]]:
    names = [*NAMES, *(["new"] if (LOG.parent / "changed").exists() else [])]
    listed: list[dict[str, Any]] = [{"name": name, "description": name, "inputSchema": TEXT} for name in names]
    if BEHAVIOUR == "twice":
        listed += [{"name": "echo", "description": "another echo", "inputSchema": TEXT}]
        listed += [{"name": "ec ho", "inputSchema": TEXT}, {"name": "ec.ho", "inputSchema": TEXT}]
    if BEHAVIOUR == "task_only":
        listed[1]["execution"] = {"taskSupport": "required"}
        listed[2]["execution"] = {"taskSupport": "optional"}
    if BEHAVIOUR == "bad_schema":
        listed[0]["inputSchema"] = {"type": "object", "anyOf": [{"type": "nonsense"}]}
    if BEHAVIOUR == "wrong_list":
        listed[0] = {"nonsense": 1}
    return listed


def call(request: dict[str, Any]) -> None:  # noqa: C901  many tools, each of them simple
    params = request["params"]
    text = params.get("arguments", {}).get("text", "")
    match params["name"]:
        case "echo":
            say(request, text)
        case "die":
            os._exit(3)
        case "leave_child":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
            os._exit(3)
        case "hang":
            token = params["_meta"]["progressToken"]
            for n in range(int(text or 0)):
                send({"method": "notifications/progress", "params": {"progressToken": token, "progress": n}})
        case "flood":
            token = params["_meta"]["progressToken"]
            for n in range(20_000):
                progress = {"progressToken": token, "progress": n, "total": 20_000, "message": "m" * 100}
                send({"method": "notifications/progress", "params": progress})
            for _ in range(1_000):
                send({"method": "notifications/tools/list_changed"})
            say(request, "flooded")
        case "huge":
            say(request, "x" * 50_000_000)
        case "huge_id_last":
            result = {"content": [{"type": "text", "text": "x" * 50_000_000}]}
            sys.stdout.write(json.dumps({"result": result, "jsonrpc": "2.0", "id": request["id"]}) + "\n")
            sys.stdout.flush()
        case "rubbish":
            sys.stdout.buffer.write(b"Hello!\n\n{\n\xff\xfe\n[1]\n" + b"y" * 200_000 + b"\n")
            say(request, "after rubbish")
        case "change":
            (LOG.parent / "changed").touch()
            send({"method": "notifications/tools/list_changed"})
            say(request, "changed")
        case "ask":
            schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
            asked = {"message": f"Which city, {text}?", "requestedSchema": schema}
            send({"id": f"ask-{request['id']}", "method": "elicitation/create", "params": asked})
        case "late":
            LATE[request["id"]] = text
        case "no_answer":
            reply(request, {"content": "nonsense"})
        case _:
            send({"id": request["id"], "error": {"code": -32602, "message": f"Unknown tool: {params['name']}"}})


def answered(message: dict[str, Any]) -> None:
    """The reply to a question of the tool `ask`."""
    result = message.get("result")
    if result:
        said = f"{result['action']} {json.dumps(result.get('content'))}"
        send({"id": int(message["id"].removeprefix("ask-")), "result": {"content": [{"type": "text", "text": said}]}})


def take(message: dict[str, Any]) -> None:
    match message.get("method"):
        case None:
            answered(message)
        case "notifications/cancelled" if (text := LATE.get(message["params"]["requestId"])) is not None:
            asked = {"message": f"Which city, {text}?", "requestedSchema": {"type": "object", "properties": {}}}
            send({"id": "ask-0", "method": "elicitation/create", "params": asked})
        case "initialize":
            capabilities = {"tools": {"listChanged": True}}
            info = {"name": "hostile", "version": "1"}
            version = message["params"]["protocolVersion"]
            reply(message, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
        case "tools/list":
            reply(message, {"tools": tools()})
        case "tools/call":
            call(message)
        case "server/discover" if BEHAVIOUR == "strict":
            os._exit(4)
        case method if "id" in message:
            send({"id": message["id"], "error": {"code": -32601, "message": f"Unknown method: {method}"}})


def main() -> None:
    if BEHAVIOUR == "exit":
        sys.exit("I will not start.")
    if BEHAVIOUR == "once" and (LOG.parent / "started").exists():
        sys.exit("I start once.")
    (LOG.parent / "started").touch()
    for line in sys.stdin:
        with LOG.open("a") as log:
            log.write(line)
        if BEHAVIOUR != "mute":
            take(json.loads(line))


main()
