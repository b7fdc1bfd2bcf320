#!/usr/bin/env python3
"""Starts PostgreSQL, Restate and two services, of which Restate calls only the second, with the help of
`benches/dispatch`. Prints their addresses as one line of JSON, kills the second service when it reads the line `kill`
on standard input, and ends at the end of the input.

    python3 two-services.py --adjutant BINARY --restate PATH/restate-server
"""

import argparse
import asyncio
import importlib.util
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
_spec = importlib.util.spec_from_file_location("dispatch", HERE.parent.parent / "benches" / "dispatch" / "run.py")
dispatch = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(dispatch)

WORD_SECONDS = 0.1


class Model(dispatch.Model):
    """Mock model: `words N` is answered with N words, one after another; `add TEXT` and `delete TEXT` become tool calls."""

    async def serve(self, reader, writer):
        try:
            while True:
                _, body = await dispatch.read_request(reader)
                last = json.loads(body)["messages"][-1]
                content = last["content"] if isinstance(last["content"], str) else "".join(part.get("text", "") for part in last["content"])
                # The time of the message stands in front of it.
                command, _, rest = content.rpartition(".]\n\n")[2].partition(" ")
                tools = {"add": ("add_task", "description"), "delete": ("delete_task", "task_id")}
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
                if last["role"] == "user" and command == "words":
                    for number in range(1, int(rest) + 1):
                        await self.send(writer, {"delta": {"role": "assistant", "content": f"word-{number} "}, "finish_reason": None})
                        await asyncio.sleep(WORD_SECONDS)
                    await self.send(writer, {"delta": {}, "finish_reason": "stop"})
                elif last["role"] == "user" and command in tools:
                    name, argument = tools[command]
                    function = {"name": name, "arguments": json.dumps({argument: rest})}
                    call = {"index": 0, "id": "c1", "type": "function", "function": function}
                    await self.send(writer, {"delta": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"})
                else:
                    await self.send(writer, {"delta": {"role": "assistant", "content": "It is done."}, "finish_reason": "stop"})
                await self.chunk(writer, b"data: [DONE]\n\n")
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    async def send(self, writer, choice):
        frame = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": [{"index": 0, **choice}]}
        await self.chunk(writer, b"data: " + json.dumps(frame).encode() + b"\n\n")

    async def chunk(self, writer, data):
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await writer.drain()


class LastOnly(dispatch.Proxy):
    """Sends Restate's calls to the second service only, the last one in the list."""

    def __init__(self, targets):
        super().__init__(targets[-1:])


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adjutant", required=True)
    parser.add_argument("--restate", required=True)
    parser.set_defaults(delay_ms=0, cost=None)
    options = parser.parse_args()
    dispatch.Model, dispatch.Proxy, dispatch.Bench.without = Model, LastOnly, []
    with tempfile.TemporaryDirectory() as folder:
        bench = dispatch.Bench(options, pathlib.Path(folder), True)
        try:
            await bench.start()
            print(json.dumps([f"http://127.0.0.1:{port}" for port in bench.ports_of]), flush=True)
            read = lambda: asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
            while command := await read():
                if command.strip() == "kill":
                    bench.services[1].process.kill()
        finally:
            bench.end()


if __name__ == "__main__":
    asyncio.run(main())
