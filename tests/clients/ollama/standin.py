"""A stand-in for an Ollama server: the requests it accepts and refuses, and the context it drops.

Written from the vendor's documentation and server, not from our adapter: the published request schema, the types into
which its Go server decodes a request, how it drops the beginning of a prompt that exceeds the window (`chatPrompt` in
server/prompt.go, and the runner's truncation after it: 9,200 tokens in a window of 4,096 are counted as 2,051), and its
error messages.
"""

import contextlib
import http.server
import json
import re
import socket
import struct
import threading
import time

NS = 1_000_000


class Model:
    """A model that the server has."""

    def __init__(self, name, capabilities=("completion", "tools"), context_length=40_960, family="qwen3"):
        self.name, self.capabilities, self.family = name, list(capabilities), family
        self.context_length = context_length

    def tag(self):
        details = {
            "parent_model": "", "format": "gguf", "family": self.family, "families": [self.family],
            "parameter_size": "8.2B", "quantization_level": "Q4_K_M",
        }
        return {
            "name": self.name, "model": self.name, "modified_at": "2026-06-19T16:26:52.429441648-07:00",
            "size": 5_225_388_164, "digest": "500a1f067a9f782620b40bee6f7b0c89e17ae61f686b92c24933e4ca4b2b8b41",
            "details": details,
        }

    def shown(self):
        return {
            "license": "Apache-2.0", "modelfile": "FROM x", "parameters": "", "template": "{{ .Prompt }}",
            "details": self.tag()["details"], "modified_at": "2026-06-19T16:26:52.429441648-07:00",
            "capabilities": self.capabilities,
            "model_info": {
                "general.architecture": self.family,
                "general.parameter_count": 8_190_735_360,
                f"{self.family}.attention.head_count": 32,
                f"{self.family}.context_length": self.context_length,
                "tokenizer.ggml.tokens": None,
            },
        }


class Refused(Exception):
    def __init__(self, status, error):
        super().__init__(error)
        self.status, self.error = status, error


def tokens(text):
    """Returns about as many tokens as a real tokenizer: parts of words, punctuation characters, and ideographs."""
    return len(re.findall(r"[^\W\d_]{1,5}|\d|[^\w\s]|_|\n", text))


# The types into which the Go server decodes a request. Go ignores unknown keys and treats null as absent; a value of
# another type is an error.


def _is(value, kind, path):
    names = {str: "string", dict: "object", list: "array", bool: "bool", int: "number"}
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise Refused(400, f"json: cannot unmarshal into Go struct field ChatRequest.{path} of type {names[kind]}")
    return value


def go_types(body):
    _is(body, dict, "")
    _is(body.get("model"), str, "model")
    _is(body.get("stream"), bool, "stream")
    for key in ("truncate", "shift"):
        _is(body.get(key), bool, key)
    options = _is(body.get("options"), dict, "options") or {}
    for key in ("num_ctx", "num_predict", "top_k", "seed"):
        _is(options.get(key), int, f"options.{key}")
    for message in _is(body.get("messages"), list, "messages") or []:
        _is(message, dict, "messages")
        for key in ("role", "content", "thinking", "tool_name", "tool_call_id"):
            _is(message.get(key), str, f"messages.{key}")
        if message.get("role") not in ("system", "user", "assistant", "tool"):
            raise Refused(400, f"invalid role: {message.get('role')}, role must be one of [system, user, assistant, tool]")
        for image in _is(message.get("images"), list, "messages.images") or []:
            _is(image, str, "messages.images")
        for call in _is(message.get("tool_calls"), list, "messages.tool_calls") or []:
            function = _is(call.get("function"), dict, "messages.tool_calls.function") or {}
            _is(function.get("name"), str, "messages.tool_calls.function.name")
            _is(function.get("arguments"), dict, "messages.tool_calls.function.arguments")
    for tool in _is(body.get("tools"), list, "tools") or []:
        function = _is(tool.get("function"), dict, "tools.function") or {}
        _is(function.get("name"), str, "tools.function.name")
        _is(function.get("description"), str, "tools.function.description")
        parameters = _is(function.get("parameters"), dict, "tools.function.parameters") or {}
        _is(parameters.get("type"), str, "tools.function.parameters.type")
        for name in _is(parameters.get("required"), list, "tools.function.parameters.required") or []:
            _is(name, str, "tools.function.parameters.required")
        for name, schema in (_is(parameters.get("properties"), dict, "tools.function.parameters.properties") or {}).items():
            path = f"tools.function.parameters.properties.{name}"
            _is(schema, dict, path)
            _is(schema.get("description"), str, f"{path}.description")
            _is(schema.get("enum"), list, f"{path}.enum")
            kind = schema.get("type")
            if kind is not None and not isinstance(kind, (str, list)):
                raise Refused(400, f"json: cannot unmarshal into Go struct field ChatRequest.{path}.type of type PropertyType")


def rendered(messages, tools):
    """Returns the prompt that a template makes: tool definitions are part of the system message."""
    shown = [f"<|im_start|>{message['role']}\n" for message in messages]
    for number, message in enumerate(messages):
        calls = "".join(json.dumps(call.get("function")) for call in message.get("tool_calls") or [])
        shown[number] += (message.get("content") or "") + calls + "<|im_end|>\n"
    return (json.dumps(tools) if tools else "") + "".join(shown) + "<|im_start|>assistant\n"


class Answer:
    """The model's answer to one request, and how the server fails during it."""

    def __init__(self, content="", thinking="", calls=(), **rest):
        self.content, self.thinking, self.calls = content, thinking, list(calls)
        self.reason = rest.pop("reason", "stop")
        # Sent instead of the answer: status and body of an error, or recorded bytes.
        self.status, self.body = rest.pop("status", None), rest.pop("body", None)
        self.headers = rest.pop("headers", {})
        # A failure in the middle: `cut`, `reset`, `half` (of a character), `stall`, `error`; `before` fails before the
        # first byte.
        self.breaks = rest.pop("breaks", None)
        assert not rest, rest

    @staticmethod
    def error(status, words, **headers):
        return Answer(status=status, body=json.dumps({"error": words}).encode(), headers=headers)


class Ollama:
    """A running server. Each request takes one of `answers`; without any left, the server answers with the number of
    messages it read.
    """

    def __init__(self, models=(), version="0.33.3", host="127.0.0.1", validator=None, knows_truncate=True):
        self.models = {model.name: model for model in models or [Model("qwen3:8b")]}
        self.version, self.validator, self.knows_truncate = version, validator, knows_truncate
        self.answers, self.asked, self.faults, self.cuts = [], [], [], 0
        # Ends every stall; set when the server stops.
        self.released = threading.Event()
        self.lock = threading.Lock()
        owner = self

        class Handler(_Handler):
            ollama = owner

        class Server(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # Either side may close the connection.

        self.http = Server((host, 0), Handler)
        self.port = self.http.server_address[1]
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.http.shutdown()
        self.http.server_close()

    def bodies(self, path="/api/chat"):
        """Returns the requests to a path."""
        return [body for method, asked, _, body in self.asked if asked == path]

    def check(self, body):
        """Returns the errors of a request under the vendor's published schema."""
        if self.validator:
            self.faults += [f"{list(error.absolute_path)}: {error.message[:200]}" for error in self.validator.iter_errors(body)]

    def model(self, name):
        found = self.models.get(name) or self.models.get(f"{name}:latest")
        if not found:
            raise Refused(404, f"model '{name}' not found")
        return found

    def read(self, model, body):
        """Returns the number of prompt tokens that the model reads. The rest, beyond the window, is dropped silently."""
        window = min((body.get("options") or {}).get("num_ctx") or 4096, model.context_length)
        messages, tools = body["messages"], body.get("tools")
        size = lambda messages: tokens(rendered(messages, tools))
        strict = self.knows_truncate and body.get("truncate") is False
        whole = size(messages)
        if whole > window and strict:
            inner = {
                "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": whole, "n_ctx": window,
                "message": f"request ({whole} tokens) exceeds the available context size ({window} tokens), try increasing it",
            }
            raise Refused(400, json.dumps({"error": inner}))
        left = messages
        for start in range(len(messages)):
            kept = [message for message in messages[:start] if message["role"] == "system"] + messages[start:]
            left = kept
            if size(kept) <= window:
                break
        read = size(left)
        if read > window - 1:
            read = window - (window - 5) // 2
        if read < whole:
            self.cuts += 1
        return read


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ollama = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.handled(None)

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        self.handled(self.rfile.read(length))

    def handled(self, raw):
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = raw
        with self.ollama.lock:
            self.ollama.asked.append((self.command, self.path, dict(self.headers), body))
        routes = {
            ("GET", "/api/version"): lambda: self.json(200, {"version": self.ollama.version}),
            ("GET", "/api/tags"): lambda: self.json(200, {"models": [m.tag() for m in self.ollama.models.values()]}),
            ("POST", "/api/show"): lambda: self.json(200, self.ollama.model(body.get("model") or "").shown()),
            ("POST", "/api/chat"): lambda: self.chat(body),
            ("POST", "/api/pull"): lambda: self.pull(body),
        }
        try:
            route = routes.get((self.command, self.path))
            if route:
                route()
            else:
                self.plain(404, b"404 page not found")
        except Refused as refused:
            self.json(refused.status, {"error": refused.error})

    def chat(self, body):
        with self.ollama.lock:
            answer = self.ollama.answers.pop(0) if self.ollama.answers else None
        if isinstance(body, dict):
            self.ollama.check(body)
        go_types(body)
        model = self.ollama.model(body.get("model") or "")
        if body.get("tools") and "tools" not in model.capabilities:
            raise Refused(400, f"registry.ollama.ai/library/{model.name} does not support tools")
        if body.get("think") and "thinking" not in model.capabilities:
            raise Refused(400, f'"{model.name}" does not support thinking')
        if answer and answer.status:
            return self.plain(answer.status, answer.body, **answer.headers)
        read = 0 if not body.get("messages") else self.ollama.read(model, body)
        if callable(answer):
            answer = answer(body)
        self.say(model, body, read, answer or Answer(f"I have read {len(body.get('messages') or [])} messages."))

    def say(self, model, body, read, answer):
        if answer.breaks == "before":
            return self.reset()
        if answer.body is not None:
            return self.streamed([answer.body])
        thinks = "thinking" in model.capabilities and body.get("think") is not False
        part = lambda **message: {
            "model": model.name, "created_at": "2026-08-04T19:59:11.820116Z",
            "message": {"role": "assistant", "content": "", **message}, "done": False,
        }
        calls = [{"id": f"call_{n}", "function": {"index": n, **call}} for n, call in enumerate(answer.calls)]
        end = part() | {
            "done": True, "done_reason": answer.reason, "total_duration": 900 * NS, "load_duration": 80 * NS,
            "prompt_eval_count": read, "prompt_eval_duration": 300 * NS,
            "eval_count": tokens(answer.thinking + answer.content) + 5, "eval_duration": 500 * NS,
        }
        if body.get("stream") is False:
            message = {"role": "assistant", "content": answer.content}
            message |= ({"thinking": answer.thinking} if thinks and answer.thinking else {}) | ({"tool_calls": calls} if calls else {})
            return self.json(200, end | {"message": message})
        lines = [part(thinking=word) for word in re.findall(r"\S+\s*", answer.thinking) if thinks]
        lines += [part(content=word) for word in re.findall(r"\s*\S+", answer.content)]
        lines += [part(tool_calls=[call]) for call in calls]
        self.streamed([json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in [*lines, end]], answer.breaks)

    def streamed(self, pieces, breaks=None):
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        kept = pieces if not breaks else pieces[: max(1, (len(pieces) - 1) // 2)]
        with contextlib.suppress(OSError):
            for piece in kept:
                self.chunk(piece)
            if breaks == "stall":
                self.ollama.released.wait(120)
            if breaks == "error":
                self.chunk(json.dumps({"error": "llama runner process has terminated: signal: killed"}).encode() + b"\n")
            if breaks == "half":
                cut = json.dumps(json.loads(pieces[0]) | {"message": {"role": "assistant", "content": "naïve"}}, ensure_ascii=False)
                self.chunk(cut.encode().split("ï".encode())[0] + "ï".encode()[:1])
            if breaks == "reset":
                # A reset discards what the other side has not read yet.
                time.sleep(0.5)
                return self.reset()
            if breaks in (None, "error", "cut"):
                # The stream ends cleanly but without its last chunk, as behind a proxy whose server has died.
                self.wfile.write(b"0\r\n\r\n")
            else:
                self.close_connection = True

    def chunk(self, piece):
        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.flush()

    def reset(self):
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def pull(self, body):
        name = body.get("model") or body.get("name") or ""
        if name.startswith("nobody/"):
            return self.json(200, {"error": "pull model manifest: file does not exist"})
        steps = [{"status": "pulling manifest"}]
        layer = {"status": "pulling a3de86cd1c13", "digest": "sha256:a3de86cd1c13", "total": 1000}
        steps += [layer | {"completed": done} for done in (0, 400, 1000)]
        steps += [{"status": "verifying sha256 digest"}, {"status": "writing manifest"}, {"status": "success"}]
        self.ollama.models[name] = Model(name)
        if body.get("stream") is False:
            return self.json(200, {"status": "success"})
        self.streamed([json.dumps(step).encode() + b"\n" for step in steps])

    def json(self, status, value):
        self.plain(status, json.dumps(value).encode(), **{"Content-Type": "application/json; charset=utf-8"})

    def plain(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": "application/json; charset=utf-8", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
