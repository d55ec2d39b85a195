"""An agent of pydantic-ai behind its AG-UI adapter, with a fake model. Run it with the port to listen on."""

import sys

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.routing import Route


async def answer(messages, info):
    """Answers by what it is sent, not by a counter."""
    requests = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    prompts = [part.content for part in requests if isinstance(part, UserPromptPart)]
    last = requests[-1]
    if isinstance(last, ToolReturnPart):
        yield f"{last.tool_name}: "
        yield str(last.content)
    elif prompts[-1] == "tide":
        yield {0: DeltaToolCall("tide", "", tool_call_id=f"call-{len(messages)}")}
        yield {0: DeltaToolCall(json_args='{"port": ')}
        yield {0: DeltaToolCall(json_args='"Brest"}')}
    elif prompts[-1] == "delete":
        yield {0: DeltaToolCall("delete", '{"name": "reef"}', tool_call_id=f"call-{len(messages)}")}
    elif prompts[-1] == "write":
        yield "# Tide pools\n"
        for number in range(20):
            yield f"Line {number}.\n"
    else:
        yield f"You said {', '.join(map(str, prompts))}."


agent = Agent(FunctionModel(stream_function=answer), output_type=[str, DeferredToolRequests])


@agent.tool_plain
def tide(port: str) -> str:
    return f"high in {port}"


@agent.tool_plain(requires_approval=True)
def delete(name: str) -> str:
    return f"{name} is gone"


async def run(request):
    return await AGUIAdapter.dispatch_request(request, agent=agent)


app = Starlette(routes=[Route("/", run, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
