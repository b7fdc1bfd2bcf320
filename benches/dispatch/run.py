#!/usr/bin/env python3
"""Runs two services on one PostgreSQL, with and without Restate, under load and faults, and prints what users noticed of it.

    python3 benches/dispatch/run.py --adjutant target/release/adjutant [--restate PATH/restate-server] [--only NAME ...] [--seconds 8]

Only Python's own library is needed, PostgreSQL's programs and, for the rows with Restate, `restate-server` (npm install
@restatedev/restate-server). A turn is a model call with one tool call, a second model call, and two writes: each model call takes
--delay-ms. Each fault has a time before it (the same run without the fault), a time with it, and a time behind it. `share` is the
throughput with the fault by that without, `slowest` the longest turn in milliseconds, `lost` counts messages that were accepted and have no
answer at the end when they are sent again under the same key, `doubled` those whose task was added more than once.
"""

import argparse
import asyncio
import collections
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

SERVICES = 2
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def read_request(reader):
    """Reads one HTTP request: its target and its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return head.split(b" ", 2)[1].decode(), await reader.readexactly(length)


class Model:
    """A model that speaks OpenAI's Chat Completions: `add WORDS` becomes a call of `add_task`, `words N` N words."""

    def __init__(self, delay):
        self.delay = delay

    async def start(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.address = "http://127.0.0.1:%d/v1" % server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        try:
            while True:
                _, body = await read_request(reader)
                await asyncio.sleep(self.delay)
                last = json.loads(body)["messages"][-1]
                words = last["content"]
                if isinstance(words, list):
                    words = "".join(part.get("text", "") for part in words)
                delta = {"role": "assistant", "content": "Done."}
                if last["role"] == "user" and words.startswith("add "):
                    arguments = json.dumps({"description": words[4:]})
                    function = {"name": "add_task", "arguments": arguments}
                    delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}
                finish = "tool_calls" if "tool_calls" in delta else "stop"
                events = [{"index": 0, "delta": delta, "finish_reason": None}, {"index": 0, "delta": {}, "finish_reason": finish}]
                frame = lambda choice: b"data: " + json.dumps({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": [choice]}).encode() + b"\n\n"
                text = b"".join(map(frame, events)) + b"data: [DONE]\n\n"
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(text) + text)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()


class Proxy:
    """A TCP proxy that can stop passing anything on, or refuse connections."""

    def __init__(self, targets):
        self.targets, self.passes, self.next = targets, asyncio.Event(), 0
        self.passes.set()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        for _ in self.targets:
            self.next += 1
            try:
                there = await asyncio.open_connection("127.0.0.1", self.targets[self.next % len(self.targets)])
                break
            except ConnectionError:
                continue
        else:
            return writer.close()

        async def copy(source, sink):
            try:
                while data := await source.read(65536):
                    await self.passes.wait()
                    sink.write(data)
                    await sink.drain()
            except (ConnectionError, asyncio.CancelledError):
                pass
            finally:
                sink.close()

        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))


class Process:
    def __init__(self, command, env=None, out=None, cwd=None, user=None):
        self.process = subprocess.Popen(command, env=env, stdout=out or subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=cwd, user=user)

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        self.process.kill()
        self.process.wait()

    def cpu(self):
        """The processor time of the process and its children, in seconds."""
        seconds, mine = 0, {self.process.pid}
        for entry in sorted((e for e in os.listdir("/proc") if e.isdigit()), key=int):
            try:
                fields = pathlib.Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(entry) in mine or int(fields[1]) in mine:
                mine.add(int(entry))
                seconds += (int(fields[11]) + int(fields[12])) / TICKS
        return seconds


class Database(Process):
    def __init__(self, folder):
        programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        find = lambda name: str(programs[-1] / name) if programs else shutil.which(name)
        self.user = "postgres" if os.getuid() == 0 else None
        folder.chmod(0o777)
        self.psql = [find("psql"), "-h", str(folder), "-U", "postgres", "-qAt"]
        subprocess.run([find("initdb"), "--no-sync", "--auth=trust", "--username=postgres", "-D", str(folder / "data")], check=True, stdout=subprocess.DEVNULL, user=self.user)
        library = ["-c", "shared_preload_libraries=pg_stat_statements"]
        super().__init__([find("postgres"), "-D", str(folder / "data"), "-k", str(folder), "-c", "listen_addresses=", "-c", "max_connections=300", *library], user=self.user)
        while subprocess.run([*self.psql, "-c", "select 1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            time.sleep(0.05)
        self.url = lambda name: f"postgres:///{name}?host={folder}&user=postgres"

    def ask(self, statement, name="postgres"):
        return subprocess.run([*self.psql, "-d", name, "-c", statement], check=True, capture_output=True, text=True).stdout.strip()


class Bench:
    def __init__(self, options, folder, dispatched):
        self.options, self.folder, self.dispatched = options, folder, dispatched
        self.answers, self.asked, self.number = [], collections.OrderedDict(), 0

    async def start(self):
        self.model = Model(self.options.delay_ms / 1000)
        await self.model.start()
        self.database = Database(self.folder)
        self.database.ask("create database team")
        self.database.ask("create extension pg_stat_statements")
        self.restate, self.services = None, []
        self.workers = [free_port() for _ in range(SERVICES)]
        if self.dispatched:
            self.start_restate()
            self.ingress, self.balancer = Proxy([self.ports["ingress"]]), Proxy(self.workers)
            await self.ingress.start()
            await self.balancer.start()
        self.ports_of = [free_port() for _ in range(SERVICES)]
        self.services = [self.start_service(number) for number in range(SERVICES)]
        for port in self.ports_of:
            while (await self.request(port, "GET", "/readyz"))[0] != 200:
                await asyncio.sleep(0.05)
        if self.dispatched:
            while (await self.request(self.ports["admin"], "GET", "/services/Conversation"))[0] != 200:
                await asyncio.sleep(0.1)

    def start_restate(self):
        if not hasattr(self, "ports"):
            self.ports = {name: free_port() for name in ("ingress", "admin", "node")}
        place = lambda name: f"127.0.0.1:{self.ports[name]}"
        config = self.folder / "restate.toml"
        config.write_text(
            f'node-name = "bench"\nbind-address = "{place("node")}"\nadvertised-address = "http://{place("node")}/"\nlisten-mode = "tcp"\n'
            f'disable-telemetry = true\n[ingress]\nbind-address = "{place("ingress")}"\n'
            f'[admin]\nbind-address = "{place("admin")}"\ndisable-web-ui = true\n'
        )
        self.restate = Process([self.options.restate, "--config-file", str(config), "--base-dir", str(self.folder / "restate"), "--no-logo"], cwd=self.folder)

    def start_service(self, number):
        home = self.folder / f"home{number}"
        home.mkdir(exist_ok=True)
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "OPENAI_COMPATIBLE_BASE_URL": self.model.address}
        env |= {"ADJUTANT_SERVE_REQUESTS_PER_MINUTE": "1000000", "ADJUTANT_SERVE_TURNS_AT_ONCE": "10000"}
        command = [self.options.adjutant, "serve", "--auth", "none", "--no-ui", "--bind", f"127.0.0.1:{self.ports_of[number]}"]
        command += ["-m", "openai-compatible/mock", "--database", self.database.url("team")]
        if self.dispatched:
            place = f"restate://127.0.0.1:{self.ingress.port}?admin=127.0.0.1:{self.ports['admin']}"
            command += ["--dispatch", f"{place}&listen=127.0.0.1:{self.workers[number]}&advertise=http://127.0.0.1:{self.balancer.port}"]
        log = open(self.folder / f"service{number}.log", "ab")
        return Process(command, env=env, out=log, cwd=home)

    async def request(self, port, method, path, body=None, key=None):
        """Asks once. Status 0: the connection broke."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            data = json.dumps(body).encode() if body is not None else b""
            head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n"
            if key:
                head += f"idempotency-key: {key}\r\n"
            writer.write(head.encode() + b"\r\n" + data)
            answer = await reader.read()
            writer.close()
            return int(answer.split(b" ", 2)[1]), answer
        except (ConnectionError, IndexError, ValueError):
            return 0, b""

    async def client(self, ports, until):
        while time.monotonic() < until():
            self.number += 1
            number = self.number
            port = ports[number % len(ports)]
            body = {"message": f"add task-{number}", "thread_id": f"t{number}"}
            began = time.monotonic()
            self.asked[number] = body
            status, answer = await self.request(port, "POST", "/v1/chat", body, f"k{number}")
            self.answers.append((began, time.monotonic() - began, status))
            if status == 200:
                self.asked.pop(number)

    async def phases(self, ports, fault, mend):
        """Loads the services before, with and after a fault; the second time a fault begins that lasts is told by `fault`."""
        seconds = self.options.seconds
        # The first turns of a process make connections.
        warm = time.monotonic() + 2
        await asyncio.gather(*(self.client(self.ports_of, lambda: warm) for _ in range(4)))
        self.answers.clear()
        begin = time.monotonic()
        ends = begin + 3 * seconds
        clients = [asyncio.create_task(self.client(ports, lambda: ends)) for _ in range(self.options.clients)]
        await asyncio.sleep(seconds)
        await fault()
        faulty = time.monotonic()
        await asyncio.sleep(seconds)
        await mend()
        mended = time.monotonic()
        await asyncio.gather(*clients)
        return begin, faulty, mended

    async def settle(self):
        """Sends again what has no answer, and counts what is lost and doubled."""
        lost = 0
        for number, body in list(self.asked.items()):
            for attempt in range(40):
                status, _ = await self.request(self.ports_of[attempt % SERVICES], "POST", "/v1/chat", body, f"k{number}")
                if status == 200:
                    break
                await asyncio.sleep(0.5)
            else:
                lost += 1
        added = self.database.ask("select count(*), count(distinct description) from adjutant_task", "team").split("|")
        return lost, int(added[0]) - int(added[1])

    def row(self, name, begin, faulty, mended, result):
        seconds = self.options.seconds
        within = lambda low, high: [took for at, took, status in self.answers if low <= at + took < high and status == 200]
        before, during = within(begin + seconds / 4, faulty), within(faulty, mended)
        rate = lambda turns, time: len(turns) / time
        share = rate(during, mended - faulty) / max(rate(before, faulty - begin - seconds / 4), 0.001)
        slowest = max((took for at, took, status in self.answers if at + took >= faulty and status == 200), default=0)
        errors = sum(status != 200 for _, _, status in self.answers)
        lost, doubled = result
        print(
            f"| {name} | {'with' if self.dispatched else 'without'} | {len(self.answers)} | {rate(before, faulty - begin - seconds / 4):.0f} | {share:.2f} | "
            f"{max(before, default=0) * 1000:.0f} | {slowest * 1000:.0f} | {errors} | {lost} | {doubled} |",
            flush=True,
        )

    def end(self):
        for process in [*self.services, self.restate, self.database]:
            if process:
                process.end()


async def nothing():
    pass


def faults(bench):
    """What breaks, by name: who is asked, how it breaks, how it is mended, and whether it needs Restate."""
    both, one = bench.ports_of, bench.ports_of[:1]

    async def sends(process, number):
        process().send(number)

    async def kills(number):
        bench.services[number].end()

    async def again(number):
        bench.services[number] = bench.start_service(number)

    async def end_restate():
        bench.restate.end()

    async def restate_again():
        bench.start_restate()

    async def hole():
        bench.ingress.passes.clear()

    async def no_hole():
        bench.ingress.passes.set()

    async def balancer_dies():
        bench.balancer.targets = [1]
        bench.balancer.passes.clear()

    async def balancer_lives():
        bench.balancer.targets = bench.workers
        bench.balancer.passes.set()

    restate, second = lambda: bench.restate, lambda: bench.services[1]
    stop, go = signal.SIGSTOP, signal.SIGCONT
    return {
        "none": (both, nothing, nothing, False),
        "the other service stopped": (one, lambda: sends(second, stop), lambda: sends(second, go), False),
        "the other service killed": (one, lambda: kills(1), lambda: again(1), False),
        "Restate stopped": (both, lambda: sends(restate, stop), lambda: sends(restate, go), True),
        "Restate killed": (both, end_restate, restate_again, True),
        "a black hole before Restate": (both, hole, no_hole, True),
        "a dead balancer before the workers": (both, balancer_dies, balancer_lives, True),
    }


async def cost(bench, clients):
    """Prints what turns cost when nothing breaks."""
    statements = lambda: int(bench.database.ask("select coalesce(sum(calls), 0) from pg_stat_statements where dbid = (select oid from pg_database where datname = 'team')"))
    cpu = lambda: [sum(service.cpu() for service in bench.services), bench.database.cpu(), bench.restate.cpu() if bench.restate else 0]
    for _ in range(2):
        # The first time is for warming up.
        bench.database.ask("select pg_stat_statements_reset()")
        bench.answers.clear()
        before = (time.monotonic(), statements(), cpu())
        ends = time.monotonic() + bench.options.seconds
        await asyncio.gather(*(bench.client(bench.ports_of, lambda: ends) for _ in range(clients)))
        after = (time.monotonic(), statements(), cpu())
    turns = len(bench.answers)
    times = sorted(took for _, took, _ in bench.answers)
    spent = [(late - early) * 1000 / turns for early, late in zip(before[2], after[2])]
    print(
        f"| {clients} | {'with' if bench.dispatched else 'without'} | {turns / (after[0] - before[0]):.0f} | {times[turns // 2] * 1000:.0f} | {times[turns * 99 // 100] * 1000:.0f} | "
        f"{(after[1] - before[1]) / turns:.1f} | {spent[0]:.1f} | {spent[1]:.1f} | {spent[2]:.1f} |",
        flush=True,
    )
    if bench.options.statements:
        print(bench.database.ask(f"select round(calls / {turns}.0, 2), left(regexp_replace(query, '\\s+', ' ', 'g'), 150) from pg_stat_statements where calls > {turns} / 20 order by 1 desc"))


async def with_bench(options, dispatched, use):
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, pathlib.Path(folder), dispatched)
        try:
            await bench.start()
            await use(bench)
        finally:
            bench.end()


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adjutant", required=True, type=os.path.abspath)
    parser.add_argument("--restate", type=os.path.abspath)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--cost", nargs="*", type=int, help="print the cost of turns at so many at once, without faults")
    parser.add_argument("--statements", action="store_true", help="with --cost: print what the statements were")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--delay-ms", type=int, default=200)
    options = parser.parse_args()
    ways = [False, True] if options.restate else [False]
    if options.cost:
        print("| at once | Restate | turns/s | p50 ms | p99 ms | statements a turn | CPU ms: services | PostgreSQL | Restate |\n|---|---|---|---|---|---|---|---|---|")
        for clients in options.cost:
            for dispatched in ways:
                await with_bench(options, dispatched, lambda bench: cost(bench, clients))
        return
    print("| fault | Restate | turns | turns/s before | share | slowest before | slowest | errors | lost | doubled |\n|---|---|---|---|---|---|---|---|---|---|")
    for name in options.only or ["none", "the other service stopped", "the other service killed", "Restate stopped", "Restate killed", "a black hole before Restate", "a dead balancer before the workers"]:
        for dispatched in ways:

            async def use(bench):
                ports, fault, mend, needs_restate = faults(bench)[name]
                if needs_restate and not dispatched:
                    return
                phases = await bench.phases(ports, fault, mend)
                bench.row(name, *phases, await bench.settle())
                if os.environ.get("BENCH_LOGS"):
                    for number in range(SERVICES):
                        print((bench.folder / f"service{number}.log").read_text())

            await with_bench(options, dispatched, use)


if __name__ == "__main__":
    asyncio.run(main())
