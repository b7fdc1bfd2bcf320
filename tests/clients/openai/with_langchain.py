"""LangChain against a running service: tools that it executes, and structured output through a tool."""

import os

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

settings = {
    "model": "adjutant",
    "base_url": f"{os.environ['ADJUTANT_URL']}/v1",
    "api_key": os.environ["ADJUTANT_TOKEN"],
    "max_retries": 0,
}
# Chat completions, and the Responses API with the whole conversation each time or continued from the last answer.
models = [
    ChatOpenAI(**settings),
    ChatOpenAI(**settings, use_responses_api=True),
    ChatOpenAI(**settings, use_responses_api=True, use_previous_response_id=True),
]


class Place(BaseModel):
    """A city, and the country it is in."""

    city: str
    country: str


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


def langchain_binds_tools():
    for bound in (model.bind_tools([get_weather]) for model in models):
        for ask in (bound.invoke, lambda messages: sum_of(bound.stream(messages))):
            messages = [HumanMessage("the weather in Oslo")]
            answer = ask(messages)
            assert [call["name"] for call in answer.tool_calls] == ["get_weather"], answer
            assert answer.tool_calls[0]["args"] == {"city": "Oslo"}, answer
            messages += [answer, *(get_weather.invoke(call) for call in answer.tool_calls)]
            answer = ask(messages)
            assert answer.text == "It is sunny there.", answer
            messages += [answer, HumanMessage("hello again")]
            assert ask(messages).text == "Hello, what can I do for you?"


def langchain_answers_have_a_form():
    for model in models:
        for method in ("function_calling", "json_schema"):
            place = model.with_structured_output(Place, method=method).invoke(f"which place? {method}")
            assert place == Place(city="Oslo", country="Norway"), place


def sum_of(chunks):
    """Joins all chunks of a stream."""
    whole = None
    for chunk in chunks:
        whole = chunk if whole is None else whole + chunk
    return whole


CHECKS = [langchain_binds_tools, langchain_answers_have_a_form]
