"""The official openai client for Python, LangChain and pydantic-ai against a running service."""

import json
import os
import re
import sys
import traceback
import urllib.request

import openai
import with_langchain
import with_pydantic_ai
import with_responses
from openai import OpenAI

URL = os.environ["ADJUTANT_URL"]
TOKEN = os.environ["ADJUTANT_TOKEN"]
client = OpenAI(base_url=f"{URL}/v1", api_key=TOKEN, max_retries=0)


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


def ask(messages, **rest):
    return client.chat.completions.create(**{"model": "adjutant", "messages": messages, **rest})


def content_of(completion):
    return completion.choices[0].message.content


def streamed(messages, **rest):
    """Joins all chunks of a stream: content, reasoning before it, and token counts."""
    content, reasoning, usage = "", "", None
    for chunk in ask(messages, stream=True, **rest):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
    return content, reasoning, usage


def tasks():
    request = urllib.request.Request(f"{URL}/v1/tasks", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request) as answer:
        return [task["description"] for task in json.load(answer)["tasks"]]


def fails_with(kind, call, **expected):
    try:
        call()
    except kind as error:
        for key, value in expected.items():
            assert getattr(error, key) == value, f"{key} of {error!r}: {getattr(error, key)!r}"
        return error
    raise AssertionError("it did not fail")


def models_are_listed():
    assert [model.id for model in client.models.list()] == ["adjutant", "adjutant-plain"]
    assert client.models.retrieve("adjutant").owned_by == "adjutant"


def a_question_is_answered():
    answer = ask([user("hello")], temperature=0.2, max_completion_tokens=500)
    assert content_of(answer) == "Hello, what can I do for you?"
    assert answer.usage.total_tokens == 20
    assert answer.choices[0].finish_reason == "stop"


def a_stream_says_the_same():
    content, reasoning, usage = streamed([user("hello")], stream_options={"include_usage": True})
    assert (content, reasoning) == ("Hello, what can I do for you?", "A greeting.")
    assert usage.prompt_tokens == 12 and usage.completion_tokens == 8
    with client.chat.completions.stream(model="adjutant", messages=[user("hello")]) as stream:
        assert content_of(stream.get_final_completion()) == "Hello, what can I do for you?"


def tools_run_on_the_server():
    content, reasoning, _ = streamed([user("add buy milk")])
    assert content == "One moment.\n\nDone.", content
    assert re.fullmatch(r'⚙ add_task \{"description":"buy milk"\}\n✓ add_task \d+ ms\n', reasoning), reasoning
    assert tasks() == ["buy milk"]


def a_deletion_waits_for_a_yes():
    asked = [user("delete milk")]
    question = content_of(ask(asked))
    assert "yes or no" in question
    assert content_of(ask([*asked, assistant(question), user("no")])) == "It stays."
    assert tasks() == ["buy milk"]
    question = content_of(ask(asked))
    assert content_of(ask([*asked, assistant(question), user("yes")])) == "Done."
    assert tasks() == []


def an_answer_has_a_form():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    assert json.loads(content_of(ask([user("where?")], response_format=form))) == {"city": "Oslo"}


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def tools_of_the_client_are_called():
    asked = [user("the weather in Oslo")]
    answer = ask(asked, tools=[WEATHER])
    assert answer.choices[0].finish_reason == "tool_calls", answer
    (call,) = answer.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Oslo"})
    brought = {"role": "tool", "tool_call_id": call.id, "content": "Oslo: sunny"}
    assert content_of(ask([*asked, answer.choices[0].message, brought], tools=[WEATHER])) == "It is sunny there."
    unknown = {"type": "function", "function": {"name": "other"}}
    fails_with(openai.BadRequestError, lambda: ask(asked, tools=[WEATHER], tool_choice=unknown), param="tool_choice")


def errors_are_typed():
    wrong = OpenAI(base_url=f"{URL}/v1", api_key="wrong", max_retries=0)
    fails_with(openai.AuthenticationError, wrong.models.list, status_code=401, code="unauthorized")
    unknown = {"status_code": 404, "code": "model_not_found", "param": "model"}
    fails_with(openai.NotFoundError, lambda: ask([user("hello")], model="gpt-4o"), **unknown)
    fails_with(openai.BadRequestError, lambda: ask([user("hello")], n=2), status_code=400, param="n")
    fails_with(openai.BadRequestError, lambda: ask([]), param="messages", code="invalid_request")
    for stream in (False, True):
        error = fails_with(
            openai.RateLimitError, lambda: ask([user("too often")], stream=stream), code="rate_limit"
        )
        assert error.response.headers["retry-after"] == "7"
    fails_with(openai.InternalServerError, lambda: ask([user("late")]), status_code=504, code="timeout")
    fails_with(openai.APIError, lambda: streamed([user("break off")]), code="truncated")


def half_done_is_not_sent_again():
    retrying = OpenAI(base_url=f"{URL}/v1", api_key=TOKEN, max_retries=3)
    call = lambda: retrying.chat.completions.create(model="adjutant", messages=[user("add and fail")])
    fails_with(openai.InternalServerError, call, status_code=503, code="server")
    assert tasks() == ["buy bread"]


CHECKS = [
    models_are_listed,
    a_question_is_answered,
    a_stream_says_the_same,
    tools_run_on_the_server,
    a_deletion_waits_for_a_yes,
    an_answer_has_a_form,
    tools_of_the_client_are_called,
    *with_responses.CHECKS,
    *with_langchain.CHECKS,
    *with_pydantic_ai.CHECKS,
    errors_are_typed,
    half_done_is_not_sent_again,
]

failed = 0
for check in CHECKS:
    try:
        check()
        print(f"ok    {check.__name__}")
    except Exception:
        failed += 1
        print(f"FAIL  {check.__name__}\n{traceback.format_exc()}")
sys.exit(1 if failed else 0)
