"""The Responses API, with the official openai client for Python."""

import json
import os

import openai
from openai import OpenAI
from pydantic import BaseModel

client = OpenAI(base_url=f"{os.environ['ADJUTANT_URL']}/v1", api_key=os.environ["ADJUTANT_TOKEN"], max_retries=0)


class Place(BaseModel):
    """A city, and the country it is in."""

    city: str
    country: str


WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}


def ask(what, **rest):
    return client.responses.create(model="adjutant", input=what, **rest)


def calls(response):
    return [item for item in response.output if item.type == "function_call"]


def brought(call, output):
    return {"type": "function_call_output", "call_id": call.call_id, "output": output}


def responses_answer():
    answer = ask("hello", instructions="Be brief.", store=False, reasoning={"effort": "low"})
    assert answer.output_text == "Hello, what can I do for you?", answer
    assert (answer.status, answer.usage.total_tokens) == ("completed", 20), answer
    assert client.responses.retrieve(answer.id).output_text == answer.output_text


def responses_stream():
    with client.responses.stream(model="adjutant", input="hello") as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == final.output_text == "Hello, what can I do for you?", final
    assert [item.type for item in final.output] == ["reasoning", "message"], final


def responses_call_tools_of_the_client():
    asked = ask("the weather in Oslo", tools=[WEATHER])
    (call,) = calls(asked)
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Oslo"}), call
    done = ask([brought(call, "Oslo: sunny")], previous_response_id=asked.id, tools=[WEATHER])
    assert done.output_text == "It is sunny there.", done
    messages = [{"role": "user", "content": "the weather in Oslo"}]
    with client.responses.stream(model="adjutant", input=messages, tools=[WEATHER]) as stream:
        asked = stream.get_final_response()
    messages += [*asked.output, brought(calls(asked)[0], "Oslo: sunny")]
    assert ask(messages, tools=[WEATHER]).output_text == "It is sunny there."


def responses_have_a_form():
    answer = client.responses.parse(model="adjutant", input="which place? json_schema", text_format=Place)
    assert answer.output_parsed == Place(city="Oslo", country="Norway"), answer


def responses_fail_as_typed_errors():
    for kind, call, code in [
        (openai.NotFoundError, lambda: client.responses.create(model="gpt-5", input="hello"), "model_not_found"),
        (openai.BadRequestError, lambda: ask("hello", tools=[{"type": "web_search"}]), "invalid_request"),
        (openai.BadRequestError, lambda: ask("hello", previous_response_id="resp_1"), "previous_response_not_found"),
        (openai.RateLimitError, lambda: ask("too often"), "rate_limit"),
        (openai.APIError, lambda: list(ask("break off", stream=True)), "truncated"),
        (openai.NotFoundError, lambda: client.embeddings.create(model="adjutant", input="hello"), "unknown"),
    ]:
        try:
            call()
        except kind as error:
            assert error.code == code, error
        else:
            raise AssertionError(f"it did not fail: {code}")


CHECKS = [
    responses_answer,
    responses_stream,
    responses_call_tools_of_the_client,
    responses_have_a_form,
    responses_fail_as_typed_errors,
]
