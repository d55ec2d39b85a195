"""The conversation with the agent of a context: kept when it is named, and begun by one message alone."""

import asyncio

from a2a_canvas.server.tool_sources.a2a_agents.agent_conversation import Conversations

URL = "http://weather.example"


class Values(dict):
    async def get(self, name):
        return super().get(name)

    async def set(self, name, value) -> None:
        self[name] = value


class AnyTurn:
    def __init__(self, thread_id: str = "tides") -> None:
        self.thread_id = thread_id
        self.values = Values()


async def test_a_context_has_none_until_the_agent_names_it_and_then_that() -> None:
    conversations, turn = Conversations(), AnyTurn()
    async with conversations.open(turn, URL) as conversation:
        assert conversation.context_id == ""
        await conversation.keep("there")
    async with Conversations().open(turn, URL) as conversation:
        assert conversation.context_id == "there"
    async with Conversations().open(turn, "http://elsewhere.example") as conversation:
        assert conversation.context_id == ""


async def test_messages_wait_for_the_first_of_their_context_until_it_is_named_or_has_failed() -> None:
    conversations = Conversations()
    reached: list[str] = []

    async def other(thread_id: str) -> None:
        async with conversations.open(AnyTurn(thread_id), URL) as conversation:
            reached.append(f"{thread_id} {conversation.context_id}")
            await conversation.keep("named")

    async with conversations.open(AnyTurn(), URL):  # fails without a name
        waiting = [asyncio.create_task(other("tides")) for _ in range(2)]
        await asyncio.sleep(0)
        await other("reefs")
        assert reached == ["reefs "]
    await asyncio.gather(*waiting)
    assert reached == ["reefs ", "tides ", "tides named"]


async def test_a_cancelled_message_lets_the_next_one_begin() -> None:
    conversations = Conversations()
    async with conversations.open(AnyTurn(), URL) as first:
        waiting = [asyncio.create_task(_begin(conversations)) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await first.keep("there")
        assert await waiting[1] == "there"


async def _begin(conversations: Conversations) -> str:
    async with conversations.open(AnyTurn(), URL) as conversation:
        return conversation.context_id
