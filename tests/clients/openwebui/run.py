"""Requests that Open WebUI sends on its own, with the templates of its package: each one is recognised as such and changes
no task, whatever the model answers. The same holds for prompts of other interfaces, and for the agent without tools.

The templates come from the published wheel, about 100 MB, which is kept in the target folder; its code is not run.
OPEN_WEBUI=VERSION selects another version.
"""

import ast
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.request
import zipfile

VERSION = os.environ.get("OPEN_WEBUI", "0.12.4")
CACHE = pathlib.Path(__file__).resolve().parents[3] / "target" / "xtask" / "open-webui"
# Prompts of other chat interfaces, paraphrased, separated by lines that begin with a percent sign.
PARAPHRASES = pathlib.Path(__file__).resolve().parents[3] / "crates/service/src/openai/background/interfaces.txt"
# The quoted conversation looks like instructions to the agent, over several lines.
CHAT = "USER: add buy milk to my list\n\nand create a task for eggs\nASSISTANT: Added both.\nUSER: add bread as a task"
PROMPT = "add buy milk to my list"
# Templates for requests in the background of a conversation. The others are instructions of features that the user
# invokes.
BACKGROUND = {
    "TITLE_GENERATION", "TAGS_GENERATION", "FOLLOW_UP_GENERATION", "QUERY_GENERATION", "AUTOCOMPLETE_GENERATION",
    "EMOJI_GENERATION", "IMAGE_PROMPT_GENERATION", "MOA_GENERATION",
}


def wheel():
    """Downloads the published package."""
    CACHE.mkdir(parents=True, exist_ok=True)
    found = list(CACHE.glob(f"open_webui-{VERSION}-*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", str(CACHE)]
        subprocess.run([*command, f"open-webui=={VERSION}"], check=True)
        found = list(CACHE.glob(f"open_webui-{VERSION}-*.whl"))
    return found[0]


def templates():
    """Returns the texts of its templates by name, from the source."""
    with zipfile.ZipFile(wheel()) as package:
        source = package.read("open_webui/config.py").decode()
    known = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            name = getattr(node.targets[0], "id", "")
            match = re.fullmatch(r"DEFAULT_(\w+?)_PROMPT(?:_TEMPLATE)?", name)
            if match:
                known[match[1]] = node.value.value
    return known


def filled(template):
    text = re.sub(r"\{\{MESSAGES[^}]*\}\}", CHAT, template)
    text = re.sub(r"\{\{(?:PROMPT|prompt)[^}]*\}\}", PROMPT, text)
    text = text.replace("{{TYPE}}", "General").replace("{{responses}}", f'"""{PROMPT}"""').replace("{{CURRENT_DATE}}", "2026-11-26")
    assert "{{" not in text, text
    return text


def ask(path, body=None):
    headers = {"Authorization": f"Bearer {os.environ['ADJUTANT_TOKEN']}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["ADJUTANT_URL"] + path, data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def tasks():
    return len(ask("/v1/tasks")["tasks"])


def complete(messages, model):
    """Returns the notices of a request, and the number of tasks it adds."""
    before = tasks()
    answer = ask("/v1/chat/completions", {"model": model, "messages": messages})
    return [notice["code"] for notice in answer["adjutant"]["notices"]], tasks() - before


def requests(known):
    """Yields every background request, with a name."""
    exchange = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": "Added."}]
    for name in sorted(BACKGROUND & known.keys()):
        order = {"role": "user", "content": filled(known[name])}
        # As a message of its own, and appended to the conversation, as older versions did.
        yield name, [order]
        yield f"{name}, behind the conversation", [*exchange, order]
    for text in PARAPHRASES.read_text().split("\n%")[1:]:
        name, order = text.split("\n", 1)
        yield name.strip(), [{"role": "user", "content": order.strip()}]


def main():
    known = templates()
    failed = [f"{name}: there is no such template in {VERSION}" for name in sorted(BACKGROUND - known.keys())]
    # A user's request does make the tool call of the model; otherwise the checks below would prove nothing.
    notices, added = complete([{"role": "user", "content": PROMPT}], "adjutant")
    if "background_prompt" in notices or added != 1:
        failed.append(f"a person's request added {added} tasks, with {notices}")
    asked = 0
    for name, messages in requests(known):
        for model in ("adjutant", "adjutant-plain"):
            asked += 1
            notices, added = complete(messages, model)
            if model == "adjutant" and "background_prompt" not in notices:
                failed.append(f"{name}: taken for a person's")
            if added != 0:
                failed.append(f"{name}, {model}: added {added} tasks")
    notices, added = complete([{"role": "user", "content": PROMPT}], "adjutant-plain")
    if added != 0:
        failed.append(f"a person's request to the model without tools added {added} tasks")
    for line in failed:
        print(f"FAIL  {line}")
    if not failed:
        print(f"ok    {asked} requests by {len(BACKGROUND)} templates of Open WebUI {VERSION} and in other words changed 0 tasks")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
