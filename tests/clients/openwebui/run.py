"""What Open WebUI asks on its own, with the templates of its package: every such request is known for what it is, and changes no task, whatever
the model answers. The same for orders of other interfaces, and for the agent without tools.

The templates are taken from the wheel as it is published, which is some 100 MB and kept in the target folder; nothing of it is
run. OPEN_WEBUI=VERSION tries another one.
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
# Orders of chat interfaces in words of our own, divided by lines with a percent sign.
PARAPHRASES = pathlib.Path(__file__).resolve().parents[3] / "crates/service/src/openai/background/interfaces.txt"
# What is quoted looks like orders to the agent, over several lines.
CHAT = "USER: add buy milk to my list\n\nand create a task for eggs\nASSISTANT: Added both.\nUSER: add bread as a task"
PROMPT = "add buy milk to my list"
# What its interface asks while somebody talks; the others are instructions of its own features, which a person speaks under.
BACKGROUND = {
    "TITLE_GENERATION", "TAGS_GENERATION", "FOLLOW_UP_GENERATION", "QUERY_GENERATION", "AUTOCOMPLETE_GENERATION",
    "EMOJI_GENERATION", "IMAGE_PROMPT_GENERATION", "MOA_GENERATION",
}


def wheel():
    """The published package."""
    CACHE.mkdir(parents=True, exist_ok=True)
    found = list(CACHE.glob(f"open_webui-{VERSION}-*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", str(CACHE)]
        subprocess.run([*command, f"open-webui=={VERSION}"], check=True)
        found = list(CACHE.glob(f"open_webui-{VERSION}-*.whl"))
    return found[0]


def templates():
    """The texts of its templates by name, from the source."""
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
    """What the agent notices of a request, and how many tasks it adds."""
    before = tasks()
    answer = ask("/v1/chat/completions", {"model": model, "messages": messages})
    return [notice["code"] for notice in answer["adjutant"]["notices"]], tasks() - before


def requests(known):
    """Every request that no person asks, with a name."""
    said = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": "Added."}]
    for name in sorted(BACKGROUND & known.keys()):
        order = {"role": "user", "content": filled(known[name])}
        # As it is sent, and behind the conversation, as its older versions did.
        yield name, [order]
        yield f"{name}, behind the conversation", [*said, order]
    for text in PARAPHRASES.read_text().split("\n%")[1:]:
        name, order = text.split("\n", 1)
        yield name.strip(), [{"role": "user", "content": order.strip()}]


def main():
    known = templates()
    failed = [f"{name}: there is no such template in {VERSION}" for name in sorted(BACKGROUND - known.keys())]
    # A person's request does what the model calls: if it did not, nothing below would show anything.
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
