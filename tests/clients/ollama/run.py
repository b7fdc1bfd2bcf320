"""The workflow of a user with a local model: the binary in an empty home, against a stand-in for an Ollama server.

Needs ADJUTANT_BIN. ADJUTANT_FIXTURES names the folder of recorded provider traffic: with it, every request is validated
by the vendor's published schema, and recordings of real servers are replayed. Without it both are reported as not run,
in the file that ADJUTANT_NOT_RUN names. Arguments are names of checks to run; the default is all.
"""

import contextlib
import functools
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import standin
from standin import Answer, Model, Ollama

BINARY = os.environ["ADJUTANT_BIN"]
FIXTURES = os.environ.get("ADJUTANT_FIXTURES")
QWEN = ["-m", "ollama/qwen3:8b"]


def not_run(name, reason):
    """Prints that a check is not run, and notes it in the file that `cargo xtask test` reads."""
    print(f"  NOT RUN: {name}: {reason}", flush=True)
    if notes := os.environ.get("ADJUTANT_NOT_RUN"):
        with open(notes, "a", encoding="utf-8") as file:
            file.write(f"clients/ollama {name}\t{reason}\n")


@functools.cache
def validator():
    """Returns the published schema of a request, if the recordings are available."""
    if not FIXTURES:
        return None
    import jsonschema

    file = pathlib.Path(FIXTURES).parent / "schemas" / "ollama.chat.request.schema.json"
    return jsonschema.Draft202012Validator(json.loads(file.read_text()))


@contextlib.contextmanager
def ollama(*models, **rest):
    """Starts a stand-in server, all of whose requests must match the schema."""
    with Ollama(models, validator=validator(), **rest) as server:
        yield server
        assert not server.faults, server.faults


class Home:
    """An empty home, and the commands that run in it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def config(self, text):
        file = self.folder / ".config" / "adjutant" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, *arguments, host=None, stdin="", code=0, under=(), **environment):
        """Runs a command until it ends, expecting the exit code `code`; `under` is a program to run it with, such as
        strace.
        """
        env = {"HOME": str(self.folder), "PATH": os.environ["PATH"], **environment}
        if host:
            env["OLLAMA_HOST"] = host
        began = time.monotonic()
        stdin = stdin.encode() if isinstance(stdin, str) else stdin
        ended = subprocess.run(
            [*under, BINARY, *arguments],
            input=stdin, capture_output=True, env=env, cwd=self.folder, timeout=300, check=False,
        )
        ended.out, ended.err = ended.stdout.decode(), ended.stderr.decode()
        ended.seconds = time.monotonic() - began
        shown = f"{arguments}\n--- exit {ended.returncode}\n--- out\n{ended.out}\n--- err\n{ended.err}"
        assert ended.returncode == code, f"wanted exit {code}: {shown}"
        assert "panicked" not in ended.err, shown
        ended.shown = shown
        return ended


    def at_a_terminal(self, *arguments, host, **environment):
        """Returns what a command prints on a terminal, and its exit code."""
        env = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "TERM": "xterm", "OLLAMA_HOST": host, **environment}
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env, cwd=self.folder
        )
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):
            while more := os.read(ours, 4096):
                seen += more
        os.close(ours)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode()), process.wait(timeout=300)


def says(ended, *words, where="err"):
    for word in words:
        assert word in getattr(ended, where), f"{word!r} is not on std{where}: {ended.shown}"


def is_(found, expected, words=""):
    assert found == expected, f"{words} {found!r}, not {expected!r}"


def words_of(message):
    """Returns what the person wrote, without the time of the message in front of it."""
    content = message["content"]
    time, separator, words = content.partition(".]\n\n")
    assert message["role"] != "user" or time.startswith("[The person sent this message on "), content
    return words if separator else content


# First steps.


def one_question_one_answer(home):
    with ollama() as server:
        server.answers = [Answer("Hello, Sam. Grüß dich, 你好 🙂")]
        ended = home.run(*QWEN, "hello there", host=server.address)
        is_(ended.out, "Hello, Sam. Grüß dich, 你好 🙂\n")
        (body,) = server.bodies()
        is_((body["model"], body["stream"], body["options"]["num_ctx"]), ("qwen3:8b", True, 32_768))
        is_(words_of(body["messages"][-1]), "hello there")


def the_model_is_found_without_a_name(home):
    models = [Model("all-minilm:latest", ["embedding"]), Model("gemma3:4b", ["completion", "vision"]), Model("qwen3:4b")]
    with ollama(*models) as server:
        home.run("ask", "-m", "ollama", "hello", host=server.address)
        home.run("ask", "hello", host=server.address)
        is_([body["model"] for body in server.bodies()], ["qwen3:4b", "qwen3:4b"])


def a_conversation_through_a_pipe(home):
    with ollama() as server:
        server.answers = [Answer("Hello, Sam."), Answer("Sam, as you said.")]
        ended = home.run("chat", *QWEN, stdin="I am Sam.\nWho am I?\n", host=server.address)
        is_(ended.out.split("\n"), ["Hello, Sam.", "Sam, as you said.", ""])
        first, second = server.bodies()
        history = [(message["role"], words_of(message)) for message in second["messages"] if message["role"] != "system"]
        is_(history, [("user", "I am Sam."), ("assistant", "Hello, Sam."), ("user", "Who am I?")])
        # The prompt begins with the same bytes, so that the server can use its cache.
        is_(second["messages"][: len(first["messages"])], first["messages"])
        is_(second.get("tools"), first.get("tools"))


def a_conversation_is_taken_up_again(home):
    with ollama() as server:
        home.run(*QWEN, "I am Sam.", host=server.address)
        home.run(*QWEN, "-c", "Who am I?", host=server.address)
        assert "I am Sam." in [words_of(message) for message in server.bodies()[1]["messages"]]


# The server's address.


def every_way_to_write_the_host(home):
    with ollama() as server:
        port = server.port
        hosts = [
            f"127.0.0.1:{port}", f"localhost:{port}", f"http://127.0.0.1:{port}", f"http://localhost:{port}/", f":{port}",
            f"0.0.0.0:{port}", f"http://0.0.0.0:{port}", f"http://127.0.0.1:{port}/v1", f"http://127.0.0.1:{port}/api",
            f'"127.0.0.1:{port}"', f" 127.0.0.1:{port} ",
        ]
        for number, host in enumerate(hosts, 1):
            home.run(*QWEN, "hello", host=host)
            is_(len(server.bodies()), number, host)
    for host in ["ftp://a.example", "a b", "localhost:port", "http://"]:
        says(home.run(*QWEN, "hello", host=host, code=3), "host:port")


def an_address_of_version_six(home):
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(ollama(host="::1"))
        except OSError as error:
            not_run("an address of version six", f"no IPv6 here ({error})")
            return
        for host in [f"[::1]:{server.port}", f"http://[::1]:{server.port}", f"[::]:{server.port}"]:
            home.run(*QWEN, "hello", host=host)
        is_(len(server.bodies()), 3)


def a_proxy_is_not_asked_for_this_machine(home):
    with ollama() as server, ollama() as proxy:
        for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]:
            for host in [f"127.0.0.1:{server.port}", f"localhost:{server.port}"]:
                home.run(*QWEN, "hello", host=host, ADJUTANT_LLM_RETRIES="0", **{name: f"http://{proxy.address}"})
        is_((len(server.bodies()), proxy.asked), (8, []))


def nobody_else_is_connected_to(home):
    """No request leaves the machine, neither through a configured proxy nor directly: checks the system calls."""
    commands = [
        (["hello"], ""), (["chat"], "hello\n"), (["models", "list"], ""), (["tasks", "list"], ""), (["config", "show"], "")
    ]
    with ollama() as server, ollama() as proxy:
        through = {name: f"http://{proxy.address}" for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]}
        for command, stdin in commands:
            home.run(*QWEN, *command, stdin=stdin, host=server.address, **through)
        is_(proxy.asked, [])
        asked = {path for _, path, _, _ in server.asked}
        assert asked <= {"/api/show", "/api/version", "/api/chat", "/api/tags"}, asked
        if not shutil.which("strace"):
            not_run("system calls", "there is no strace")
            return
        calls = home.folder / "calls"
        for command, stdin in commands:
            strace = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg", "-o", str(calls)]
            home.run(*QWEN, *command, stdin=stdin, host=server.address, under=strace)
            ports = re.findall(r"sa_family=AF_INET6?,.*?port=htons\((\d+)\)", calls.read_text())
            asks = command[0] in ("hello", "chat")
            is_(set(ports) | ({str(server.port)} if not asks else set()), {str(server.port)}, command)


def the_configuration_file(home):
    with ollama(Model("mine:1b")) as server:
        for size in ["context_size", "contextSize"]:
            home.config(
                f'model = "ollama"\n[ollama]\nhost = "127.0.0.1"\nport = {server.port}\nmodel = "mine:1b"\n'
                f'{size} = 16384\ntimeout = "90s"\nkeep_alive = "10m"\n'
            )
            home.run("hello")
            body = server.bodies()[-1]
            is_((body["model"], body["options"]["num_ctx"], body["keep_alive"]), ("mine:1b", 16_384, "10m"))
        # The command line and the environment each take precedence over the file.
        home.run("-m", "ollama/other:1b", "hello", code=3)
        is_(server.bodies()[-1]["model"], "other:1b")
    with ollama(Model("mine:1b")) as other:
        home.run("hello", host=other.address)
        is_(len(other.bodies()), 1)


def keep_alive_is_sent_as_it_is_meant(home):
    with ollama() as server:
        for written, sent in [("30m", "30m"), ("-1", -1), ("0", 0), ("3600", 3600)]:
            home.config(f'[ollama]\nkeep_alive = "{written}"\n')
            home.run(*QWEN, "hello", host=server.address)
            is_(server.bodies()[-1].get("keep_alive"), sent)


# Missing servers and models.


def nobody_listens(home):
    with ollama() as server:
        gone = server.address
    ended = home.run(*QWEN, "hello", host=gone, code=5)
    says(ended, "Is Ollama running at http://127.0.0.1", "ollama serve", "attempt 3 failed")
    is_(ended.err.count("ollama serve"), 1, "what to do, once:")


def the_model_is_missing(home):
    with ollama() as server:
        ended = home.run("-m", "ollama/llama9:70b", "hello", host=server.address, code=3)
        says(ended, "ollama pull llama9:70b")
        assert len(server.bodies()) <= 1, "asked again for what is not there"
        # The error is a sentence where a model's name was expected.
        ended = home.run("-m", "ollama/qwen3:8b; rm -rf /", "hello", host=server.address, code=3)


def the_model_calls_no_tools(home):
    with ollama(Model("gemma3:4b", ["completion", "vision"])) as server:
        ended = home.run("-m", "ollama/gemma3:4b", "hello", host=server.address, code=5)
        says(ended, "does not take tools", "ollama pull qwen3:8b")
        is_(server.bodies(), [])
        says(home.run("-m", "ollama", "hello", host=server.address, code=3), "pull qwen3:8b")


def an_old_server_says_nothing_of_its_models(home):
    with ollama(version="0.3.0") as server:
        shown = server.model("qwen3:8b").shown
        server.models["qwen3:8b"].shown = lambda: {"license": "", "details": shown()["details"]}
        server.answers = [Answer("Hello.")]
        is_(home.run(*QWEN, "hello", host=server.address).out, "Hello.\n")


def another_kind_of_server(home):
    for code, answer in [
        (5, Answer(status=404, body=b"404 page not found")),
        (5, Answer(status=404, body=b'{"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}')),
        (5, Answer(status=200, body=b"<html><body>Please log in</body></html>")),
        (5, Answer(status=200, body=b'{"choices": [{"message": {"content": "I am something else."}}]}')),
        (5, Answer(status=200, body=b"[]")),
        (5, Answer(status=200, body=b"")),
    ]:
        with ollama() as server:
            server.answers = [answer] * 9
            ended = home.run(*QWEN, "hello", host=server.address, ADJUTANT_LLM_RETRIES="0", code=code)
            says(ended, "Error")
            assert "I am something else" not in ended.out, ended.shown
            assert "ollama pull" not in ended.err, f"the model is not what is missing: {ended.shown}"


# Failures in the middle of an answer.


def three_more_attempts_and_then_words(home):
    for broken in [
        Answer.error(503, "server busy, please try again.  maximum pending requests exceeded"),
        Answer.error(500, "llama runner process has terminated: exit status 2"),
        Answer("Hello.", breaks="before"),
    ]:
        with ollama() as server:
            server.answers = [broken] * 9
            ended = home.run(*QWEN, "hello", host=server.address, code=5)
            is_(len(server.bodies()), 4, "attempts:")
            assert ended.seconds > 3, f"no waits between attempts: {ended.seconds}"
            says(ended, "attempt 3 failed", "again in", "Error")
            assert not ended.out.strip() or "unavailable" in ended.out, ended.shown


def it_works_at_the_third_attempt(home):
    with ollama() as server:
        busy = Answer.error(503, "server busy, please try again.  maximum pending requests exceeded")
        server.answers = [busy, Answer("Hello.", breaks="before"), Answer("Hello.")]
        is_(home.run(*QWEN, "hello", host=server.address).out, "Hello.\n")
        is_(len(server.bodies()), 3)


def what_cannot_get_better_is_asked_once(home):
    for status, words, code, said in [
        (404, "model 'qwen3:8b' not found", 3, "ollama pull qwen3:8b"),
        (404, 'model "qwen3:8b" not found, try pulling it first', 3, "ollama pull qwen3:8b"),
        (400, "registry.ollama.ai/library/qwen3:8b does not support tools", 5, "ollama show"),
        (400, "invalid options: num_gpu", 5, "invalid options"),
        (401, "unauthorized", 3, "OLLAMA_API_KEY"),
    ]:
        with ollama() as server:
            server.answers = [Answer.error(status, words)] * 9
            says(home.run(*QWEN, "hello", host=server.address, code=code), said)
            is_(len(server.bodies()), 1, words)


def too_little_memory(home):
    with ollama() as server:
        words = "model requires more system memory (12.3 GiB) than is available (4.5 GiB)"
        server.answers = [Answer.error(500, words)] * 9
        ended = home.run(*QWEN, "hello", host=server.address, code=5)
        says(ended, "12.3 GiB", "smaller")
        is_(len(server.bodies()), 1, "memory does not grow by asking again:")


def gone_in_the_middle(home):
    text = "One two three four five six seven eight."
    for breaks in ["cut", "reset", "half", "error"]:
        with ollama() as server:
            server.answers = [Answer(text, breaks=breaks)]
            seen, code = home.at_a_terminal(*QWEN, "count", host=server.address)
            is_(code, 5, seen)
            assert "One two" in seen and "Error" in seen, f"{breaks}: {seen}"
            assert "\ufffd" not in seen, seen
            is_(len(server.bodies()), 1, f"{breaks}: sent again after something was shown:")
            # The conversation can continue.
            server.answers = [Answer("Where were we.")]
            is_(home.run(*QWEN, "-c", "go on", host=server.address).out, "Where were we.\n")
            # Piped output: half an answer is never printed as if it were complete.
            server.answers = [Answer(text, breaks=breaks)]
            ended = home.run(*QWEN, "count", host=server.address, code=5)
            says(ended, "Error")
            assert ended.out.strip() and ended.out.strip() != text, ended.shown


def it_stops_talking(home):
    with ollama() as server:
        server.answers = [Answer("One two three four five.", breaks="stall")]
        seen, code = home.at_a_terminal(*QWEN, "count", host=server.address, LLM_TIMEOUT="1")
        is_(code, 5, seen)
        assert "One two" in seen and "said nothing for 1 s" in seen and "ollama.timeout 2s" in seen, seen
        is_(len(server.bodies()), 1, "requests:")


def a_chat_outlives_its_server(home):
    with ollama() as server:
        server.answers = [Answer("One."), Answer("Two three four five.", breaks="reset"), Answer("Six.")]
        ended = home.run("chat", *QWEN, stdin="a\nb\nc\n", host=server.address)
        says(ended, "One.", "Six.", where="out")
        says(ended, "Error")


def an_empty_answer_is_no_answer(home):
    with ollama() as server:
        server.answers = [Answer(""), Answer("Hello.")]
        is_(home.run(*QWEN, "hello", host=server.address).out, "Hello.\n")
        server.answers = [Answer("")] * 9
        ended = home.run(*QWEN, "hello", host=server.address, code=5)
        assert ended.out.strip() or ended.err.strip(), ended.shown


# Tools, with native calls and with calls in the text.

ADD = {"name": "add_task", "arguments": {"description": "buy milk"}}


def _added(home, server):
    listed = home.run("tasks", "list", "--json")
    assert "buy milk" in listed.out, listed.shown
    second = server.bodies()[1]["messages"]
    is_((second[-1]["role"], second[-1]["tool_name"]), ("tool", "add_task"))
    is_(second[-2]["tool_calls"][0]["function"]["arguments"], {"description": "buy milk"})


def a_tool_is_called(home):
    with ollama() as server:
        server.answers = [Answer(calls=[ADD]), Answer("Noted: buy milk.")]
        is_(home.run(*QWEN, "remind me to buy milk", host=server.address).out, "Noted: buy milk.\n")
        _added(home, server)


def tools_called_in_words(home):
    call = json.dumps(ADD)
    for form in [
        f"<tool_call>\n{call}\n</tool_call>",
        f"Sure.\n<tool_call>{call}</tool_call>",
        f"<|python_tag|>{json.dumps({'name': 'add_task', 'parameters': ADD['arguments']})}",
        f"[TOOL_CALLS][{call}]",
        "<function=add_task>\n<parameter=description>\nbuy milk\n</parameter>\n</function>",
        f"```json\n{call}\n```",
        call,
    ]:
        with tempfile.TemporaryDirectory() as folder, ollama() as server:
            inner = Home(folder)
            server.answers = [Answer(form), Answer("Noted.")]
            ended = inner.run(*QWEN, "remind me to buy milk", host=server.address)
            assert "add_task" not in ended.out, f"{form}: {ended.shown}"
            _added(inner, server)


def a_deletion_waits(home):
    with ollama() as server:
        server.answers = [Answer(calls=[ADD]), Answer("Noted.")]
        home.run(*QWEN, "remind me to buy milk", host=server.address)
        server.answers = [Answer(calls=[{"name": "delete_task", "arguments": {"task_id": "1"}}]), Answer("Gone.")]
        says(home.run(*QWEN, "forget the milk", host=server.address, code=4), "adjutant pending approve")
        assert "buy milk" in home.run("tasks", "list", "--json").out


# Reasoning.


def thinking_is_no_answer(home):
    with ollama(Model("qwen3:8b", ["completion", "tools", "thinking"])) as server:
        server.answers = [Answer("Four.", thinking="Two and two is four."), Answer("<think>Two and two.</think>\n\nFour.")]
        for _ in range(2):
            ended = home.run(*QWEN, "two and two?", host=server.address)
            is_(ended.out, "Four.\n")
        body = server.bodies()[0]
        assert body["options"]["num_predict"] > 1024, "no room for thinking"
        assert "temperature" not in body["options"], "a model that thinks repeats itself at temperature 0"


def thinking_on_and_off(home):
    with ollama(Model("qwen3:8b", ["completion", "tools", "thinking"])) as server:
        for word, sent in [("off", False), ("on", True), ("low", "low"), ("max", "max")]:
            home.config(f'[ollama]\nthink = "{word}"\n')
            home.run(*QWEN, "hello", host=server.address)
            is_(server.bodies()[-1]["think"], sent)
        home.config('[ollama]\nthink = "hard"\n')
        says(home.run(*QWEN, "hello", host=server.address, code=3), "ollama.think")
    home.config('[ollama]\nthink = "on"\n')
    with ollama() as server:
        says(home.run(*QWEN, "hello", host=server.address, code=5), "does not support thinking", "think")


# The context window.

PROSE = "The keeper wrote down wind, cloud and the ships that passed before the lamp was lit. "


def windows(*models):
    """A current server, which can be told not to truncate, and one of last year, which cannot."""
    for knows, version in [(True, "0.33.3"), (False, "0.11.4")]:
        yield ollama(*models, knows_truncate=knows, version=version)


def _told(home, server, text):
    """A text that exceeds the window is shortened with a notice, or refused with a reason; the server never truncates it
    silently.
    """
    env = {"HOME": str(home.folder), "PATH": os.environ["PATH"], "OLLAMA_HOST": server.address}
    ended = subprocess.run([BINARY, *QWEN, "-"], input=text, capture_output=True, env=env, text=True, timeout=300, check=False)
    shown = f"exit {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    if ended.returncode == 0:
        is_(server.cuts, 0, f"an answer to a request that lost its beginning: {shown}")
        assert re.search(r"was cut|left out|summar", ended.stderr), f"nobody said that it was shortened: {shown}"
    else:
        is_(ended.returncode, 6, shown)
        assert "I have read" not in ended.stdout, shown
        assert re.search(r"context|window|too long", ended.stderr), shown


def what_does_not_fit_is_told(home):
    home.config("[ollama]\ncontext_size = 4096\n")
    for server in windows():
        with server as server:
            _told(home, server, f"Summarise: {PROSE * 400}")


def text_with_more_tokens_than_it_looks(home):
    """More tokens than the length suggests: only the server knows that the text does not fit, and a current one reports
    it.
    """
    home.config("[ollama]\ncontext_size = 3000\n")
    dense = " ".join(f"{n}:{n * 7919 % 1000}" for n in range(460))
    with ollama() as server:
        _told(home, server, f"Add these up: {dense}")


def a_smaller_window_than_asked_for(home):
    """The model's own limit is 4,096 tokens, whatever num_ctx is."""
    for server in windows(Model("qwen3:8b", context_length=4096)):
        with server as server:
            _told(home, server, f"Summarise: {PROSE * 400}")


def one_call_that_is_over_the_window(home):
    """A bare model call shortens nothing, so nothing may be lost."""
    home.config("[ollama]\ncontext_size = 4096\n")
    request = {"messages": [{"role": "user", "text": PROSE * 400}]}
    for server in windows():
        with server as server:
            for stream in [False, True]:
                ended = home.run(
                    "models", "call", *QWEN, stdin=json.dumps(request | {"stream": stream}), host=server.address, code=6
                )
                is_(json.loads(ended.out.splitlines()[-1])["error"]["kind"], "context_too_long")


def a_long_conversation_in_a_small_window(home):
    """Because of the setting, or because of the model's own limit."""
    turns = "".join(f"Part {number}: {PROSE * 12}\n" for number in range(1, 13))
    for config, model in [
        ("[ollama]\ncontext_size = 4096\n", Model("qwen3:8b")),
        ("", Model("qwen3:8b", context_length=4096)),
    ]:
        for server in windows(model):
            with server as server, tempfile.TemporaryDirectory() as folder:
                inner = Home(folder)
                inner.config(config)
                ended = inner.run("chat", *QWEN, stdin=turns, host=server.address)
                is_(server.cuts, 0, f"requests that lost their beginning: {ended.shown}")
                assert "Error" not in ended.err, ended.shown
                assert ended.out.count("I have read") >= 12, ended.shown
                assert re.search(r"left out|summar", ended.err), f"nobody said that it was shortened: {ended.shown}"


def tools_of_facts_are_short_in_a_small_window(home):
    for size, is_short in [(4096, True), (32_768, False)]:
        home.config(f"[ollama]\ncontext_size = {size}\n")
        with ollama() as server:
            home.run(*QWEN, "hello", host=server.address)
            tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in server.bodies()[0]["tools"]}
            assert {"remember", "recall", "forget"} <= set(tools), list(tools)
            is_(list(tools["remember"]["properties"]) == ["fact"], is_short, f"{size} tokens:")


def small_models_choose_from_actions(home):
    milk = Answer('{"actions": [{"add_task": {"description": "Buy milk"}}]}')
    with ollama(Model("qwen2.5:1.5b")) as server:
        server.answers = [milk, Answer("Noted.")]
        ended = home.run("-m", "ollama/qwen2.5:1.5b", "add buy milk", host=server.address)
        says(ended, "Added", "Buy milk", where="out")
        first = server.bodies()[0]
        assert "tools" not in first and "actions" in first["format"]["properties"], first
        home.config('[llm]\ntool_calling = "free"\n')
        home.run("-m", "ollama/qwen2.5:1.5b", "add buy milk", host=server.address)
        last = server.bodies()[-1]
        assert "format" not in last and "add_task" in json.dumps(last["tools"]), last


def every_request_has_a_window(home):
    with ollama() as server:
        server.answers = [Answer(calls=[ADD]), Answer("Noted.")]
        home.run(*QWEN, "remind me to buy milk", host=server.address)
        home.run("models", "call", *QWEN, stdin='{"messages": [{"role": "user", "text": "hello"}]}', host=server.address)
        is_([body["options"]["num_ctx"] for body in server.bodies()], [32_768] * 3)


# Recordings of real servers.


def recorded_answers(home):
    if not FIXTURES:
        not_run("recorded answers", "recordings of other projects: ADJUTANT_FIXTURES does not name their folder")
        return
    seen = 0
    for id_, index, recorded, expected in recordings():
        if expected["status"] != 200:
            continue
        with ollama() as server:
            server.answers = [Answer(body=recorded)]
            request = {"messages": [{"role": "user", "text": "hello"}], "stream": expected["stream"]}
            names = [name for name, _ in expected.get("tool_calls") or []]
            if names:
                request["tools"] = [{"name": name, "parameters": {"type": "object"}} for name in dict.fromkeys(names)]
            ended = home.run("models", "call", *QWEN, stdin=json.dumps(request), host=server.address)
            answer = json.loads(ended.out.splitlines()[-1])
            is_(answer["text"], expected.get("text") or "", f"{id_} {index}")
            called = [[call["name"], call["args"]] for call in answer["tool_calls"]]
            is_(called, expected.get("tool_calls") or [], f"{id_} {index}")
            seen += 1
    assert seen >= 10, f"only {seen} recordings"


def recordings():
    """Yields every exchange with `/api/chat`: recording, number, response body, and what the vendor's client made of it."""
    import yaml

    folder = pathlib.Path(FIXTURES)
    for line in (folder / "expected.jsonl").read_text().splitlines():
        row = json.loads(line)
        if not row["id"].startswith("ollama/"):
            continue
        text = (folder / row["id"]).read_bytes()
        if row["id"].endswith(".httprr"):
            yield row["id"], row["index"], httprr(text), row
            continue
        documents = list(yaml.safe_load_all(text))
        if documents and "when" in documents[0]:
            exchanges = [d["then"]["body"] for d in documents if d["when"]["path"] == "/api/chat"]
        else:
            exchanges = [exchange["response"]["body"]["string"] for exchange in documents[0]["interactions"]]
        body = exchanges[row["index"]]
        yield row["id"], row["index"], body if isinstance(body, bytes) else body.encode(), row


def httprr(text):
    """Returns the body of the first response in a recorded trace, joined from its chunks."""
    _, sizes, rest = text.split(b"\n", 2)
    asked, answered = map(int, sizes.split())
    _, body = rest[asked : asked + answered].split(b"\r\n\r\n", 1)
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        size = int(size, 16)
        whole, body = whole + body[:size], body[size + 2 :]
        if not size:
            break
    return whole


CHECKS = [
    value for name, value in list(globals().items())
    if callable(value) and getattr(value, "__code__", None) and value.__code__.co_varnames[:1] == ("home",) and not name.startswith("_")
]


def main():
    if not FIXTURES:
        not_run("the published schema", "recordings of other projects: ADJUTANT_FIXTURES does not name their folder")
    failed = 0
    for check in CHECKS:
        if sys.argv[1:] and check.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(Home(folder))
                print(f"ok    {check.__name__}", flush=True)
            except Exception:
                failed += 1
                print(f"FAIL  {check.__name__}\n{traceback.format_exc()}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
