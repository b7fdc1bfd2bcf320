"""pydantic-ai against a running service: its own tools, and typed output through a tool."""

import asyncio
import os

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = OpenAIProvider(base_url=f"{os.environ['ADJUTANT_URL']}/v1", api_key=os.environ["ADJUTANT_TOKEN"])
models = [OpenAIChatModel("adjutant", provider=provider), OpenAIResponsesModel("adjutant", provider=provider)]


class Place(BaseModel):
    """A city, and the country it is in."""

    city: str
    country: str


def pydantic_ai_has_typed_output():
    for model in models:
        result = Agent(model, output_type=Place).run_sync("find the place")
        assert result.output == Place(city="Oslo", country="Norway"), result.output


def pydantic_ai_runs_its_own_tools():
    for model in models:
        asked = []
        agent = Agent(model, output_type=Place, instructions="Be brief.")

        @agent.tool_plain
        def look_up(name: str) -> str:
            """Looks a place up."""
            asked.append(name)
            return f"{name} is in Norway"

        result = agent.run_sync("look the place up first")
        assert (asked, result.output) == (["Oslo"], Place(city="Oslo", country="Norway")), (asked, result.output)
        # The conversation continues with all messages.
        more = agent.run_sync("find the place again", message_history=result.all_messages())
        assert more.output.city == "Oslo", more.output


def pydantic_ai_streams():
    async def output_of(model):
        async with Agent(model).run_stream("hello") as result:
            return "".join([piece async for piece in result.stream_text(delta=True)])

    for model in models:
        assert asyncio.run(output_of(model)) == "Hello, what can I do for you?"


CHECKS = [pydantic_ai_has_typed_output, pydantic_ai_runs_its_own_tools, pydantic_ai_streams]
