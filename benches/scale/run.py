#!/usr/bin/env python3
"""Measures the limits of a deployment on PostgreSQL (docs/scale.md): statements, commits and write-ahead log of a turn,
connections and memory of a replica, and the load of idle replicas on a database in which many conversations wait for a
confirmation.

    python3 benches/scale/run.py --adjutant target/release/adjutant [--waiting 100000] [--replicas 1 2 4 8] [--rest 60] [--running 500]

Needs only Python's standard library and PostgreSQL's programs. It starts its own PostgreSQL (`fsync` and
`synchronous_commit` on) and services, whose model has no latency by default. Waiting conversations are copies of one,
with its events, inputs and decision, made in SQL.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import time

# Statements of the services only.
OURS = "dbid = (select oid from pg_database where datname = 'team')"
HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
_spec = importlib.util.spec_from_file_location("dispatch", HERE.parent / "dispatch" / "run.py")
dispatch = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(dispatch)


class Model(dispatch.Model):
    """The mock model of `benches/dispatch`, in which `drop TEXT` becomes a call of `delete_task`, which needs
    confirmation.
    """

    def __init__(self):
        super().__init__(0)

    async def serve(self, reader, writer):
        try:
            while True:
                _, body = await dispatch.read_request(reader)
                await asyncio.sleep(self.delay)
                last = json.loads(body)["messages"][-1]
                words = last["content"]
                if isinstance(words, list):
                    words = "".join(part.get("text", "") for part in words)
                delta, finish = {"role": "assistant", "content": "Done."}, "stop"
                call = {"add": ("add_task", "description"), "drop": ("delete_task", "task_id")}.get(words.split(" ")[0])
                if last["role"] == "user" and call:
                    function = {"name": call[0], "arguments": json.dumps({call[1]: words.split(" ", 1)[1]})}
                    delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}
                    finish = "tool_calls"
                usage = {"prompt_tokens": 500, "completion_tokens": 20, "total_tokens": 520}
                chunk = lambda **more: b"data: " + json.dumps({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "mock", **more}).encode() + b"\n\n"
                text = chunk(choices=[{"index": 0, "delta": delta, "finish_reason": None}])
                text += chunk(choices=[{"index": 0, "delta": {}, "finish_reason": finish}], usage=usage) + b"data: [DONE]\n\n"
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(text) + text)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()


class Bench(dispatch.Bench):
    async def start(self):
        self.model = Model()
        await self.model.start()
        self.database = dispatch.Database(self.folder)
        self.database.ask("create database team")
        self.database.ask("create extension pg_stat_statements")
        self.database.ask("create extension pg_walinspect")
        self.restate, self.services, self.ports_of, self.workers = None, [], [], []

    def ask(self, statement):
        return self.database.ask(statement, "team")

    async def replicas(self, count):
        while len(self.services) < count:
            self.ports_of.append(dispatch.free_port())
            self.services.append(self.start_service(len(self.services)))
        for port in self.ports_of:
            while (await self.request(port, "GET", "/readyz"))[0] != 200:
                await asyncio.sleep(0.05)

    def memory(self):
        """Returns the resident memory of each replica, in MiB."""
        sizes = []
        for service in self.services:
            for line in pathlib.Path(f"/proc/{service.process.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS"):
                    sizes.append(int(line.split()[1]) / 1024)
        return sizes

    def connections(self):
        """Returns the number of connections of all replicas by state."""
        rows = self.ask("select state || ' ' || count(*) from pg_stat_activity where datname = 'team' and pid <> pg_backend_pid() group by state order by 1")
        return dict((row.rsplit(" ", 1)[0], int(row.rsplit(" ", 1)[1])) for row in rows.splitlines())

    def counts(self):
        """Returns the number of statements and the position in the write-ahead log, read from another database so that
        this query is not counted.
        """
        statements = self.database.ask(f"select coalesce(sum(calls), 0)::bigint from pg_stat_statements where {OURS}")
        return int(statements), self.database.ask("select pg_current_wal_flush_lsn()")

    def since(self, before):
        """Returns the number of statements, of commits that wrote something, and KiB of the write-ahead log."""
        statements, place = self.counts()
        commits = self.database.ask(
            f"select count(*) from pg_get_wal_records_info('{before[1]}', '{place}') where resource_manager = 'Transaction' and record_type like 'COMMIT%'"
        )
        log = self.database.ask(f"select pg_wal_lsn_diff('{place}', '{before[1]}')")
        return statements - before[0], int(commits), int(log) / 1024

    async def rest(self, seconds):
        """Returns the statements per minute of idle services, and those that take most of the time."""
        self.database.ask("select pg_stat_statements_reset()")
        before, processor = self.counts(), sum(service.cpu() for service in self.services)
        await asyncio.sleep(seconds)
        (statements, commits, log), minutes = self.since(before), seconds / 60
        processor = sum(service.cpu() for service in self.services) - processor
        rows = self.database.ask(
            "select calls || ' x ' || round(mean_exec_time::numeric, 3) || ' ms, ' || (shared_blks_hit + shared_blks_read) / calls || ' pages: ' || regexp_replace(query, '\\s+', ' ', 'g')"
            f" from pg_stat_statements where {OURS} order by total_exec_time desc limit 10"
        )
        each = {"statements": statements, "commits that write": commits, "log KiB": log, "processor s": processor}
        return {f"{name} a minute": count / minutes for name, count in each.items()}, rows.splitlines()

    async def turns(self, count, words, at_once=8):
        """Runs turns, each in a new conversation, and returns the cost of one."""
        self.database.ask("checkpoint")
        self.database.ask("select pg_stat_statements_reset()")
        size, limit = self.size(), asyncio.Semaphore(at_once)
        before, began = self.counts(), time.monotonic()

        async def one(number):
            async with limit:
                key = f"{words}-{number}-{began}"
                status, answer = await self.request(self.ports_of[number % len(self.ports_of)], "POST", "/v1/chat", {"message": words}, key)
                if status != 200:
                    raise SystemExit(f"a turn failed: {status} {answer}")

        await asyncio.gather(*(one(number) for number in range(count)))
        seconds = time.monotonic() - began
        statements, commits, log = self.since(before)
        return {"statements": statements / count, "commits that write": commits / count, "log KiB": log / count, "stored KiB": (self.size() - size) / count / 1024, "turns/s": count / seconds}

    def size(self):
        return int(self.database.ask("select pg_database_size('team')"))

    def add_waiting(self, count):
        """Copies the first waiting conversation with its dependent rows."""
        original = self.ask("select min(key) from adjutant_conversation where parked_seq is not null")
        first = int(self.ask("select max(key) + 1 from adjutant_conversation"))
        copies = f"generate_series(0, {count - 1}) as n"
        columns = "agent, title, created_at, updated_at, next_seq, untaken, turn, parked_seq, waiting, wake_at, turns"
        self.ask(
            f"insert into adjutant_conversation (key, user_id, id, {columns}) overriding system value"
            f" select {first} + n, 'user-' || n % 1000, gen_random_uuid()::text, {columns} from adjutant_conversation, {copies} where key = {original}"
        )
        fresh = {"adjutant_event": {}, "adjutant_inbox": {}, "adjutant_decision": {"id": "gen_random_uuid()::text", "conversation_id": "gen_random_uuid()::text", "user_id": "'user-' || n % 1000"}}
        for table, values in fresh.items():
            listed = self.ask(
                f"select string_agg(column_name, ', ') from information_schema.columns where table_name = '{table}' and is_identity = 'NO' and is_generated = 'NEVER'"
                " and column_name not in ('conversation'%s)" % "".join(f", '{name}'" for name in values)
            )
            names, news = ", ".join(["conversation", listed, *values]), ", ".join([f"{first} + n", listed, *values.values()])
            self.ask(f"insert into {table} ({names}) select {news} from {table}, {copies} where conversation = {original}")
        self.ask("select setval(pg_get_serial_sequence('adjutant_conversation', 'key'), (select max(key) from adjutant_conversation))")
        self.ask("vacuum analyze")


def show(name, values):
    words = ", ".join(f"{key} {value:,.1f}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items())
    print(f"{name}: {words}", flush=True)


async def measure(options, folder):
    bench = Bench(options, folder, False)
    await bench.start()
    try:
        await bench.replicas(1)
        show("a replica that was just started", {"memory MiB": bench.memory()[0], **bench.connections()})
        await bench.turns(50, "add a task")
        for name, words in (("a turn of words", "hello"), ("a turn that adds a task", "add a thing"), ("a turn that waits for a person", "drop 1")):
            show(name, await bench.turns(300, words))
        show("connections after that", bench.connections())
        before = bench.memory()[0]
        bench.model.delay = 40
        asked = (bench.request(bench.ports_of[0], "POST", "/v1/chat", {"message": f"hello {number}"}, f"run{number}") for number in range(options.running))
        running = asyncio.gather(*asked)
        await asyncio.sleep(15)
        counts, _ = await bench.rest(20)
        show(f"{options.running} turns that wait for a model", {"memory MiB": bench.memory()[0], "KiB for each": (bench.memory()[0] - before) * 1024 / options.running, **counts, **bench.connections()})
        show("their answers", {str(status): sum(1 for got, _ in await running if got == status) for status in {200}})
        bench.model.delay = 0
        size, began = bench.size(), time.monotonic()
        bench.add_waiting(options.waiting)
        show(f"{options.waiting} conversations that wait", {"made in s": time.monotonic() - began, "stored KiB each": (bench.size() - size) / options.waiting / 1024})
        for count in options.replicas:
            await bench.replicas(count)
            # Unused connections are closed.
            await asyncio.sleep(options.settle)
            counts, rows = await bench.rest(options.rest)
            show(f"{count} replicas at rest", {**counts, "memory MiB": " ".join(f"{size:.0f}" for size in bench.memory()), **bench.connections()})
            for row in rows:
                print("    ", row[:260], flush=True)
        show("a turn that adds a task, beside them", await bench.turns(300, "add a thing"))
    finally:
        for process in [*bench.services, bench.database]:
            process.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adjutant", required=True)
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--rest", type=int, default=60, help="seconds for which replicas at rest are watched")
    parser.add_argument("--settle", type=int, default=30, help="seconds they are given to come to rest")
    parser.add_argument("--running", type=int, default=500)
    options = parser.parse_args()
    options.adjutant = str(pathlib.Path(options.adjutant).resolve())
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options, pathlib.Path(folder)))


if __name__ == "__main__":
    main()
