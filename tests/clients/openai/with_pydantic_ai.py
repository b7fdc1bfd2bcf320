"""pydantic-ai against a running service: its own tools, and typed output by way of a tool."""

import os

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = OpenAIProvider(base_url=f"{os.environ['ADJUTANT_URL']}/v1", api_key=os.environ["ADJUTANT_TOKEN"])
model = OpenAIChatModel("adjutant", provider=provider)


class Place(BaseModel):
    """A city, and the country it is in."""

    city: str
    country: str


def pydantic_ai_has_typed_output():
    result = Agent(model, output_type=Place).run_sync("find the place")
    assert result.output == Place(city="Oslo", country="Norway"), result.output


def pydantic_ai_runs_its_own_tools():
    asked = []
    agent = Agent(model, output_type=Place)

    @agent.tool_plain
    def look_up(name: str) -> str:
        """Looks a place up."""
        asked.append(name)
        return f"{name} is in Norway"

    result = agent.run_sync("look the place up first")
    assert (asked, result.output) == (["Oslo"], Place(city="Oslo", country="Norway")), (asked, result.output)
    # The conversation goes on with all of it.
    more = agent.run_sync("find the place again", message_history=result.all_messages())
    assert more.output.city == "Oslo", more.output


CHECKS = [pydantic_ai_has_typed_output, pydantic_ai_runs_its_own_tools]
