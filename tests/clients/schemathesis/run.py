"""Schemathesis against `/openapi.json`: for any request, no response is an undocumented 5xx, no response is undocumented,
and every response matches its schema.

With ADJUTANT_BIN it starts a service of its own, because it sends more requests per minute than one user may. With
ADJUTANT_URL and ADJUTANT_TOKEN but without ADJUTANT_BIN it uses that service, whose serve.requests_per_minute must be
raised. Seed and number of cases are fixed, so that every machine sends the same requests; SCHEMATHESIS_SEED and
SCHEMATHESIS_CASES change them.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
# Generated cases per operation: a sample, or more in a long run.
CASES = int(os.environ.get("SCHEMATHESIS_CASES", "400" if os.environ.get("ADJUTANT_TEST_SIZE") == "long" else "20"))
SEED = os.environ.get("SCHEMATHESIS_SEED", "20261122")


@contextlib.contextmanager
def service():
    """Yields address and token of a service, for as long as it is needed."""
    binary = os.environ.get("ADJUTANT_BIN")
    if not binary:
        yield os.environ["ADJUTANT_URL"], os.environ["ADJUTANT_TOKEN"]
        return
    with tempfile.TemporaryDirectory() as home:
        command = [binary, "serve", "--json", "--bind", "127.0.0.1:0", "-m", f"scripted:{HERE / 'script.jsonl'}"]
        environment = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "ADJUTANT_SERVE_REQUESTS_PER_MINUTE": "1000000",
            "ADJUTANT_SERVE_TURNS_AT_ONCE": "1000",
        }
        process = subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            announced = json.loads(process.stdout.readline())
            yield announced["url"], announced["token"]
            if process.poll() is not None:
                sys.exit(f"the service ended by itself, with {process.returncode}")
        finally:
            process.terminate()
            process.wait(timeout=300)
            process.stdout.close()


def request(url, token, path, body):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    asked = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked, timeout=180) as answer:
        return json.load(answer)


def passes(url, token):
    """Yields the runs, one after another, each with its own configuration and options."""
    config = (HERE / "schemathesis.toml").read_text()
    yield "every address", config, []
    # Generated ids do not exist. These do, so that the code behind the lookup is tested as well.
    answer = request(url, token, "/v1/chat", {"message": "1", "thread_id": "known"})
    request(url, token, "/v1/tools/add_task/invoke", {"args": {"description": "buy milk"}})
    known = f"""
[parameters]
"path.thread_id" = "known"
"path.run_id" = "{answer["run_id"]}"
"path.id" = "{answer["run_id"]}"
"path.name" = "list_tasks"
"""
    yield "what there is", known + config, ["--include-path-regex", "[{]", "--exclude-method", "DELETE"]


def main():
    failed = 0
    with service() as (url, token), tempfile.TemporaryDirectory() as scratch:
        for number, (name, config, options) in enumerate(passes(url, token)):
            file = pathlib.Path(scratch, f"{number}.toml")
            file.write_text(config)
            command = [
                sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()",
                "--config-file", str(file),
                "run", f"{url}/openapi.json",
                "--header", f"Authorization: Bearer {token}",
                "--seed", SEED,
                "--max-examples", str(CASES),
                "--generation-database", "none",
                "--workers", "1",
                "--request-timeout", "180",
                "--continue-on-failure",
                "--no-color",
                *options,
                *sys.argv[1:],
            ]
            ended = subprocess.run(command, cwd=scratch, check=False).returncode
            print(f"{'ok' if ended == 0 else 'FAILED'}: {name}, {CASES} cases for each operation, seed {SEED}", flush=True)
            failed = failed or ended
    return failed


if __name__ == "__main__":
    sys.exit(main())
