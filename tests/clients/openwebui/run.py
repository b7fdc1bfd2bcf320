"""What Open WebUI asks on its own, with the templates of its package: every such request is known for what it is.

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


def is_background(messages):
    answer = ask("/v1/chat/completions", {"model": "adjutant", "messages": messages})
    return "background_prompt" in [notice["code"] for notice in answer["adjutant"]["notices"]]


def main():
    known = templates()
    missing = BACKGROUND - known.keys()
    failed = [f"{name}: there is no such template in {VERSION}" for name in sorted(missing)]
    for name in sorted(BACKGROUND - missing):
        text = filled(known[name])
        said = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": "Added."}]
        # As it is sent, and behind the conversation, as its older versions did.
        for messages in ([{"role": "user", "content": text}], [*said, {"role": "user", "content": text}]):
            if not is_background(messages):
                failed.append(f"{name}: taken for a person's")
    if is_background([{"role": "user", "content": PROMPT}]):
        failed.append("a person was taken for the interface")
    for line in failed:
        print(f"FAIL  {line}")
    if not failed:
        print(f"ok    {len(BACKGROUND)} templates of Open WebUI {VERSION}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
