"""The public function-calling set over one model in three ways, resumable.

Arguments: the folder of the package bfcl-eval, the program adjutant, the server's address and key, the file of answers,
the number of cases of each category, the seed.

Each answer is a line of the file, so a run that is stopped goes on where it was. An answer is right if the checker of the
set says so; for `irrelevance`, if there is no call. A call is valid if it names a function of the case, and its arguments
have the required names and the declared types.
"""

import json
import math
import os
import random
import subprocess
import sys
import types
import urllib.request

folder, adjutant, address, key, answers_file, per_category, seed = sys.argv[1:]
per_category = int(per_category)
sys.path.insert(0, folder)
# The checker asks for the name conventions of a model; its own table needs the packages of twenty vendors.
conventions = types.ModuleType("bfcl_eval.constants.model_config")
conventions.MODEL_CONFIG_MAPPING = {"adjutant": types.SimpleNamespace(underscore_to_dot=True)}
sys.modules[conventions.__name__] = conventions
# Java and JavaScript are not asked.
for language in ("java", "js"):
    converter = types.ModuleType(f"bfcl_eval.eval_checker.ast_eval.type_convertor.{language}_type_converter")
    setattr(converter, f"{language}_type_converter", None)
    sys.modules[converter.__name__] = converter

from bfcl_eval.constants.enums import Language
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

CATEGORIES = {"simple": "simple_python", "multiple": "multiple", "parallel": "parallel", "irrelevance": "irrelevance"}
WAYS = ("plain", "adapter", "policy")
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}
MAX_TOKENS = 512
BLOCK = 20
TIMEOUT = 600


def lines(name):
    with open(os.path.join(folder, "bfcl_eval", "data", name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def sample():
    """Returns the cases by category, each with its right answer."""
    cases = []
    for category, file in CATEGORIES.items():
        rows = lines(f"BFCL_v4_{file}.json")
        right = {}
        if category != "irrelevance":
            right = {row["id"]: row["ground_truth"] for row in lines(f"possible_answer/BFCL_v4_{file}.json")}
        # A run with more cases has those of one with fewer.
        order = list(range(len(rows)))
        random.Random(f"{seed} {category}").shuffle(order)
        cases += [(category, rows[at], right.get(rows[at]["id"])) for at in order[:per_category]]
    return cases


def json_schema(schema):
    """Returns a schema of the set as JSON Schema: its types are those of Python."""
    if isinstance(schema, list):
        return [json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: TYPES.get(value, value) if name == "type" and isinstance(value, str) else json_schema(value)
        for name, value in schema.items()
    }


def function_name(name):
    return name.replace(".", "_")


def functions(case):
    return [
        {
            "name": function_name(function["name"]),
            "description": function["description"],
            "parameters": json_schema(function["parameters"]),
        }
        for function in case["function"]
    ]


def message(case):
    turns = case["question"][0]
    system = "\n".join(turn["content"] for turn in turns if turn["role"] == "system")
    user = "\n".join(turn["content"] for turn in turns if turn["role"] == "user")
    return system, user


def plain(case):
    """Asks the server as it is, by the template of the model."""
    system, user = message(case)
    messages = [{"role": "system", "content": system}] if system else []
    request = {
        "model": "local",
        "messages": messages + [{"role": "user", "content": user}],
        "tools": [{"type": "function", "function": function} for function in functions(case)],
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
    }
    call = urllib.request.Request(
        f"{address}/v1/chat/completions",
        json.dumps(request).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {key}"},
    )
    try:
        with urllib.request.urlopen(call, timeout=TIMEOUT) as response:
            answer = json.load(response)["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        # The server refuses to parse some of what the model wrote.
        return [], error.read().decode(errors="replace")[:200]
    calls = []
    for call in answer.get("tool_calls") or []:
        try:
            calls.append({call["function"]["name"]: json.loads(call["function"]["arguments"])})
        except ValueError:
            calls.append({call["function"]["name"]: None})
    return calls + calls_in(answer.get("content") or ""), None


def calls_in(text):
    """Returns the calls that the server left in the text, with or without the marks of the template."""
    calls = []
    at = text.find("{")
    while at >= 0:
        try:
            found, end = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            end = at + 1
        else:
            if "name" in found and "arguments" in found:
                calls.append({str(found["name"]): found["arguments"]})
        at = text.find("{", end)
    return calls


def by_adjutant(case, flags):
    system, user = message(case)
    request = {"messages": [{"role": "user", "text": user}], "tools": functions(case), "max_tokens": MAX_TOKENS, "temperature": 0}
    if system:
        request["system"] = system
    ended = subprocess.run(
        [adjutant, "models", "call", "-m", "llama-cpp/local", "--base-url", address, *flags],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, "LLAMA_API_KEY": key, "LLM_TIMEOUT": str(TIMEOUT)},
    )
    answer = json.loads(ended.stdout.splitlines()[-1])
    # Questions and refusals are no calls of a function.
    calls = [call for call in answer["tool_calls"] if call["name"] not in ("ask_user", "decline")]
    error = answer["error"] and f"{answer['error']['kind']}: {ended.stderr.strip()[-200:]}"
    return [{call["name"]: call["args"]} for call in calls], error


ASK = {
    "plain": plain,
    "adapter": lambda case: by_adjutant(case, []),
    "policy": lambda case: by_adjutant(case, ["--constrained"]),
}


def fits(value, schema):
    """Returns true if a value has the type of a schema."""
    if "enum" in schema and value not in schema["enum"]:
        return False
    kind = schema.get("type")
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "array":
        return isinstance(value, list) and all(fits(item, schema.get("items", {})) for item in value)
    expected = {"string": str, "boolean": bool, "object": dict}.get(kind, object)
    return isinstance(value, expected)


def is_valid(call, case):
    (name, arguments), = call.items()
    declared = {function["name"]: function["parameters"] for function in functions(case)}.get(name)
    if declared is None or not isinstance(arguments, dict):
        return False
    properties = declared.get("properties", {})
    has_required = all(name in arguments for name in declared.get("required", []))
    return has_required and all(name in properties and fits(value, properties[name]) for name, value in arguments.items())


def is_right(category, case, right, calls):
    if category == "irrelevance":
        return not calls
    if any(not isinstance(arguments, dict) for call in calls for arguments in call.values()):
        return False
    kind = CATEGORIES[category]
    return ast_checker(case["function"], calls, right, Language.PYTHON, kind, "adjutant")["valid"]


def share(right, of):
    """Returns a share with its 95 % interval by Wilson."""
    if not of:
        return "-"
    z, p = 1.96, right / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    spread = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return f"{100 * p:.1f} % ({100 * max(middle - spread, 0):.1f} to {100 * (middle + spread):.1f})"


def difference(pairs):
    """Returns the difference of two shares over the same cases, in points, with its 95 % interval."""
    n = len(pairs)
    gained = sum(b and not a for a, b in pairs)
    lost = sum(a and not b for a, b in pairs)
    mean = (gained - lost) / n
    spread = 1.96 * math.sqrt(max(gained + lost - n * mean * mean, 0)) / n
    return f"{100 * mean:+.1f} points ({100 * (mean - spread):+.1f} to {100 * (mean + spread):+.1f})"


def main():
    known = {}
    if os.path.exists(answers_file):
        with open(answers_file, encoding="utf-8") as file:
            known = {(row["id"], row["way"]): row for row in map(json.loads, file)}
    cases = sample()
    total = len(cases) * len(WAYS)
    # Blocks of cases, so that a run that is stopped has the same cases in all ways, and the server keeps what the requests
    # of one way have in common.
    order = list(range(len(cases)))
    random.Random(seed).shuffle(order)
    with open(answers_file, "a", encoding="utf-8") as file:
        done = sum((case["id"], way) in known for _, case, _ in cases for way in WAYS)
        for at in range(0, len(order), BLOCK):
            block = [cases[at][1] for at in order[at : at + BLOCK]]
            # The first two send the same prompt.
            asked = [(case, way) for case in block for way in WAYS[:2]] + [(case, WAYS[2]) for case in block]
            for case, way in asked:
                if (case["id"], way) in known:
                    continue
                calls, error = ASK[way](case)
                row = {"id": case["id"], "way": way, "calls": calls, "error": error}
                known[case["id"], way] = row
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                file.flush()
                done += 1
                print(f"{done} of {total} answers", file=sys.stderr, flush=True)
    report(cases, known)


def report(cases, known):
    verdicts = {}
    for category, case, right in cases:
        for way in WAYS:
            row = known[case["id"], way]
            verdicts[way, case["id"]] = is_right(category, case, right, row["calls"])
    print(f"{'':12} {'cases':>5}  " + "  ".join(f"{way:>24}" for way in WAYS))
    for name in (*CATEGORIES, "all"):
        ids = [case["id"] for category, case, _ in cases if name in (category, "all")]
        shares = [share(sum(verdicts[way, id] for id in ids), len(ids)) for way in WAYS]
        print(f"{name:12} {len(ids):>5}  " + "  ".join(f"{share:>24}" for share in shares))
    calls = {
        way: [is_valid(call, case) for _, case, _ in cases for call in known[case["id"], way]["calls"]] for way in WAYS
    }
    print("valid calls         " + "  ".join(f"{f'{sum(of)} of {len(of)}':>24}" for of in calls.values()))
    errors = [sum(known[case["id"], way]["error"] is not None for _, case, _ in cases) for way in WAYS]
    print("failed requests     " + "  ".join(f"{count:>24}" for count in errors))
    for way in WAYS[:2]:
        pairs = [(verdicts[way, case["id"]], verdicts["policy", case["id"]]) for _, case, _ in cases]
        print(f"policy against {way}: {difference(pairs)}")


main()
