"""An agent of agent-framework behind agent-framework-ag-ui, with a fake client. Run it with the port to listen on."""

import sys

import uvicorn
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    ResponseStream,
    tool,
)
from agent_framework_ag_ui import add_agent_framework_fastapi_endpoint
from fastapi import FastAPI


class FakeClient(FunctionInvocationLayer, BaseChatClient):
    """Answers by what it is sent, not by a counter."""

    def _inner_get_response(self, *, messages, stream, options, **more):
        async def updates():
            for content in contents(messages):
                yield ChatResponseUpdate(contents=[content], role="assistant", message_id=f"m-{len(messages)}")

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)


def contents(messages):
    prompts = [message.text for message in messages if message.role == "user" and message.text]
    results = [each for each in messages[-1].contents if each.type == "function_result"]
    if results:
        return [Content.from_text("tool: "), Content.from_text(str(results[-1].result))]
    match prompts[-1]:
        case "tide":
            call = f"call-{len(messages)}"
            return [
                Content.from_function_call(call, "tide", arguments='{"port": '),
                Content.from_function_call(call, "", arguments='"Brest"}'),
            ]
        case "delete":
            return [Content.from_function_call(f"call-{len(messages)}", "delete", arguments='{"name": "reef"}')]
        case "write":
            return [Content.from_text(text) for text in ["# Tide pools\n", *(f"Line {n}.\n" for n in range(20))]]
        case _:
            return [Content.from_text(f"You said {', '.join(prompts)}.")]


@tool(approval_mode="never_require")
def tide(port: str) -> str:
    return f"high in {port}"


@tool(approval_mode="always_require")
def delete(name: str) -> str:
    return f"{name} is gone"


app = FastAPI()
agent = Agent(FakeClient(), name="tides", tools=[tide, delete])
add_agent_framework_fastapi_endpoint(app, agent, "/", single_user=True)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
