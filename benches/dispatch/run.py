#!/usr/bin/env python3
"""Runs several services with one PostgreSQL, with and without Restate, under load and faults, and prints the effect on
users.

    python3 benches/dispatch/run.py --adjutant target/release/adjutant [--restate PATH/restate-server] [--only NAME ...] [--seconds 8] [--check]

Needs only Python's standard library, PostgreSQL's programs and, for the rows with Restate, `restate-server` (npm
install @restatedev/restate-server). A turn is a model call with one tool call, a second model call, and two writes;
each model call takes --delay-ms. Each fault has a period before it (the same run without the fault), one with it, and
one after it. `share` is the throughput with the fault divided by that without, `slowest` the longest turn in
milliseconds, `lost` the number of accepted messages without an answer after they were sent again with the same key, and
`doubled` the number of messages whose task was added twice. With --check the exit code is 1, with the reason, if a
message was lost or doubled, if a request failed, or if a row had no turns. Times and shares are never checked.
"""

import argparse
import asyncio
import collections
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")
# Seconds after which a start is given up: a port may be taken after all, or a program may not run on this machine.
STARTS_WITHIN = 180
# Below the ephemeral ports, so that no outgoing connection takes a port before its server does.
PORTS = itertools.cycle(range(20_000 + os.getpid() * 97 % 10_000, 32_000))


def free_port():
    for port in PORTS:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


async def read_request(reader):
    """Parses an HTTP request into its target and its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return head.split(b" ", 2)[1].decode(), await reader.readexactly(length)


class Model:
    """A mock model for OpenAI's Chat Completions: `add TEXT` becomes a call of `add_task`, `words N` is answered with N
    words.
    """

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
    """A TCP proxy that can stop forwarding, or refuse connections."""

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

        try:
            await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))
        except asyncio.CancelledError:
            # The run is over.
            pass


class Process:
    def __init__(self, command, env=None, out=None, cwd=None, user=None):
        self.process = subprocess.Popen(command, env=env, stdout=out or subprocess.DEVNULL, stderr=out or subprocess.DEVNULL, cwd=cwd, user=user)

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        self.process.kill()
        self.process.wait()

    def cpu(self):
        """Returns the CPU time of the process and its children, in seconds."""
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
    # The web page is not used here.
    without = ["--no-ui"]

    def __init__(self, options, folder, dispatched, services=2, nodes=1):
        self.options, self.folder, self.dispatched = options, folder, dispatched
        self.count, self.node_count = services, nodes
        self.answers, self.asked, self.number = [], collections.OrderedDict(), 0
        self.database, self.nodes, self.services = None, [], []

    async def start(self):
        self.model = Model(self.options.delay_ms / 1000)
        await self.model.start()
        self.database = Database(self.folder)
        self.database.ask("create database team")
        self.database.ask("create extension pg_stat_statements")
        self.workers = [free_port() for _ in range(self.count)]
        if self.dispatched:
            self.ports = [{name: free_port() for name in ("ingress", "admin", "node")} for _ in range(self.node_count)]
            self.nodes = [self.start_node(number) for number in range(self.node_count)]
            self.ingress, self.balancer = Proxy([ports["ingress"] for ports in self.ports]), Proxy(self.workers)
            await self.ingress.start()
            await self.balancer.start()
        self.ports_of = [free_port() for _ in range(self.count)]
        self.services = [self.start_service(number) for number in range(self.count)]
        for number in range(self.count):
            await self.until_ready(number)
        if self.dispatched:
            while (await self.request(self.ports[0]["admin"], "GET", "/services/Conversation"))[0] != 200:
                await asyncio.sleep(0.1)
            for ports in self.ports:
                await self.until_called(ports["ingress"])

    async def until_called(self, ingress):
        """Waits until a Restate node calls workers, which takes several nodes some seconds. The request itself does
        nothing.
        """
        path = "/Conversation/2:00000000-0000-7000-8000-000000000000:adjutant:nobody/advance"
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                if (await asyncio.wait_for(self.request(ingress, "POST", path), 1))[0] == 200:
                    return
            await asyncio.sleep(0.1)

    async def until_ready(self, number):
        while (await self.request(self.ports_of[number], "GET", "/readyz"))[0] != 200:
            await asyncio.sleep(0.05)

    def start_node(self, number):
        """Starts a Restate node. The first one creates the cluster, in which two nodes replicate everything."""
        place = lambda name: f"127.0.0.1:{self.ports[number][name]}"
        config = self.folder / f"restate{number}.toml"
        nodes = ", ".join(f'"http://127.0.0.1:{ports["node"]}/"' for ports in self.ports)
        config.write_text(
            f'cluster-name = "bench"\nnode-name = "n{number}"\nauto-provision = {"false" if number else "true"}\n'
            f'default-replication = {min(self.node_count, 2)}\nbind-address = "{place("node")}"\nadvertised-address = "http://{place("node")}/"\n'
            f'listen-mode = "tcp"\ndisable-telemetry = true\n[metadata-client]\naddresses = [{nodes}]\n'
            f'[ingress]\nbind-address = "{place("ingress")}"\n[admin]\nbind-address = "{place("admin")}"\ndisable-web-ui = true\n'
        )
        return Process([self.options.restate, "--config-file", str(config), "--base-dir", str(self.folder / "restate"), "--no-logo"], cwd=self.folder)

    def start_service(self, number):
        home = self.folder / f"home{number}"
        home.mkdir(exist_ok=True)
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "OPENAI_COMPATIBLE_BASE_URL": self.model.address}
        env |= {"ADJUTANT_SERVE_REQUESTS_PER_MINUTE": "1000000", "ADJUTANT_SERVE_TURNS_AT_ONCE": "10000"}
        command = [self.options.adjutant, "serve", "--auth", "none", "--drain-delay", "1s", "--bind", f"127.0.0.1:{self.ports_of[number]}"]
        command += self.without
        command += ["-m", "openai-compatible/mock", "--database", self.database.url("team")]
        if self.dispatched:
            # Without a fault no proxy is needed, which as a Python process would cost CPU time.
            ingress = self.ports[0]["ingress"] if self.options.cost else self.ingress.port
            place = f"restate://127.0.0.1:{ingress}?admin=127.0.0.1:{self.ports[0]['admin']}"
            command += ["--dispatch", f"{place}&listen=127.0.0.1:{self.workers[number]}&advertise=http://127.0.0.1:{self.balancer.port}"]
        log = open(self.folder / f"service{number}.log", "ab")
        return Process(command, env=env, out=log, cwd=home)

    async def request(self, port, method, path, body=None, key=None):
        """Sends one request. Status 0 means that the connection broke."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            data = json.dumps(body).encode() if body is not None else b""
            head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {len(data)}\r\n"
            if data:
                head += "content-type: application/json\r\n"
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
        """Loads the services before, during and after a fault. Returns the times at which the load began, the fault was in
        effect, and it was repaired.
        """
        seconds = self.options.seconds
        # The first turns of a process open connections.
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
        """Sends messages without an answer again, and counts lost and doubled ones."""
        lost = 0
        for number, body in list(self.asked.items()):
            for attempt in range(40):
                status, _ = await self.request(self.ports_of[attempt % self.count], "POST", "/v1/chat", body, f"k{number}")
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
        wrong = {"lost": lost, "doubled": doubled, "not answered at first": errors}
        self.wrong = [f"{count} turns were {what}" for what, count in wrong.items() if count]
        if not before or not during:
            self.wrong.append("no turn ended")
        print(
            f"| {name} | {'with' if self.dispatched else 'without'} | {len(self.answers)} | {rate(before, faulty - begin - seconds / 4):.0f} | {share:.2f} | "
            f"{max(before, default=0) * 1000:.0f} | {slowest * 1000:.0f} | {errors} | {lost} | {doubled} |",
            flush=True,
        )

    def end(self):
        for process in [*self.services, *self.nodes, *filter(None, [self.database])]:
            process.end()


async def nothing():
    pass


class Fault:
    """A fault: the services that get requests meanwhile (all, or all but the last), how it begins, and how it is repaired."""

    def __init__(self, breaks=None, mends=None, spares_last=False, needs_restate=False, services=2, nodes=1):
        self.breaks, self.mends = breaks or nothing, mends or nothing
        self.spares_last, self.needs_restate, self.services, self.nodes = spares_last, needs_restate, services, nodes


async def nothing(bench):
    pass


def service(number):
    """Sends a signal to the last service."""

    async def send(bench):
        bench.services[-1].send(number)

    return send


def node(number):
    """Sends a signal to the last Restate node."""

    async def send(bench):
        bench.nodes[-1].send(number)

    return send


async def kill_service(bench):
    bench.services[-1].end()


async def start_service(bench):
    bench.services[-1] = bench.start_service(bench.count - 1)


async def restart_service(bench):
    """A rolling upgrade: SIGTERM, running turns end, and a new process takes the place."""
    bench.services[-1].send(signal.SIGTERM)
    while bench.services[-1].process.poll() is None:
        await asyncio.sleep(0.05)
    await start_service(bench)
    await bench.until_ready(bench.count - 1)


async def kill_node(bench):
    bench.nodes[-1].end()


async def start_node(bench):
    bench.nodes[-1] = bench.start_node(bench.node_count - 1)


async def hole(bench):
    bench.ingress.passes.clear()


async def no_hole(bench):
    bench.ingress.passes.set()


async def end_balancer(bench):
    bench.balancer.targets = [1]
    bench.balancer.passes.clear()


async def start_balancer(bench):
    bench.balancer.targets = bench.workers
    bench.balancer.passes.set()


STOP, GO = signal.SIGSTOP, signal.SIGCONT
FAULTS = {
    "none": Fault(),
    "the other service stopped": Fault(service(STOP), service(GO), spares_last=True),
    "the other service killed": Fault(kill_service, start_service, spares_last=True),
    "the other service restarted": Fault(restart_service, spares_last=True),
    "one of three services killed": Fault(kill_service, start_service, spares_last=True, services=3),
    "Restate stopped": Fault(node(STOP), node(GO), needs_restate=True),
    "Restate killed": Fault(kill_node, start_node, needs_restate=True),
    "a black hole before Restate": Fault(hole, no_hole, needs_restate=True),
    "a dead balancer before the workers": Fault(end_balancer, start_balancer, needs_restate=True),
    "none, two nodes of Restate": Fault(needs_restate=True, nodes=2),
    "one of two nodes of Restate killed": Fault(kill_node, start_node, needs_restate=True, nodes=2),
    "one of three nodes of Restate killed": Fault(kill_node, start_node, needs_restate=True, nodes=3),
}


async def cost(bench, clients):
    """Prints the cost of turns without a fault."""
    statements = lambda: int(bench.database.ask("select coalesce(sum(calls), 0) from pg_stat_statements where dbid = (select oid from pg_database where datname = 'team')"))
    cpu = lambda: [sum(service.cpu() for service in bench.services), bench.database.cpu(), sum(node.cpu() for node in bench.nodes)]
    for _ in range(2):
        # The first round warms up.
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


async def with_bench(options, dispatched, use, **sizes):
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, pathlib.Path(folder), dispatched, **sizes)
        try:
            try:
                await asyncio.wait_for(bench.start(), STARTS_WITHIN)
            except asyncio.TimeoutError:
                logs = sorted(bench.folder.glob("service*.log"))
                sys.exit("what is to be tested did not start: " + " ".join(log.read_text()[-2000:] for log in logs))
            return await use(bench)
        finally:
            bench.end()


async def suffer(options, dispatched, name):
    """Prints the row of a fault, and returns the reasons to fail."""
    fault = FAULTS[name]

    async def use(bench):
        ports = bench.ports_of[:-1] if fault.spares_last else bench.ports_of
        phases = await bench.phases(ports, lambda: fault.breaks(bench), lambda: fault.mends(bench))
        bench.row(name, *phases, await bench.settle())
        if os.environ.get("BENCH_LOGS"):
            for number in range(bench.count):
                print((bench.folder / f"service{number}.log").read_text())
        return [f"{name}, {'with' if dispatched else 'without'} Restate: {wrong}" for wrong in bench.wrong]

    return await with_bench(options, dispatched, use, services=fault.services, nodes=fault.nodes)


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adjutant", required=True, type=os.path.abspath)
    parser.add_argument("--restate", type=os.path.abspath)
    parser.add_argument("--only", nargs="*", choices=FAULTS, metavar="FAULT", help=", ".join(FAULTS))
    parser.add_argument("--only-with", action="store_true", help="no rows without Restate")
    parser.add_argument("--check", action="store_true", help="end with 1 if a turn was lost, doubled or not answered")
    parser.add_argument("--cost", nargs="*", type=int, help="print the cost of turns at so many at once, without faults")
    parser.add_argument("--statements", action="store_true", help="with --cost: print what the statements were")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--delay-ms", type=int, default=200)
    options = parser.parse_args()
    ways = [way for way in (False, True) if (options.restate if way else not options.only_with)]
    if options.cost:
        print("| at once | Restate | turns/s | p50 ms | p99 ms | statements a turn | CPU ms: services | PostgreSQL | Restate |\n|---|---|---|---|---|---|---|---|---|")
        for clients in options.cost:
            for dispatched in ways:
                await with_bench(options, dispatched, lambda bench: cost(bench, clients))
        return 0
    print("| fault | Restate | turns | turns/s before | share | slowest before | slowest | errors | lost | doubled |\n|---|---|---|---|---|---|---|---|---|---|")
    wrong = []
    for name in options.only or FAULTS:
        for dispatched in ways:
            if dispatched or not FAULTS[name].needs_restate:
                wrong += await suffer(options, dispatched, name)
    for words in wrong:
        print(words)
    return 1 if options.check and wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
