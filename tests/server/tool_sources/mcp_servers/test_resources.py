from a2a_canvas.server.tool_sources.mcp_servers.resources import listing, read_description, resource_lines


def test_a_line_has_the_address_the_name_and_what_it_is() -> None:
    lines = resource_lines(
        [{"uri": "a://b", "name": "B", "description": "All\nof it"}, {"uri": "a://c", "name": "a://c"}],
        [{"uriTemplate": "a://{id}", "name": "by id"}],
    )
    assert lines == ["a://b – B – All of it", "a://c", "a://{id} – by id"]


def test_a_description_names_all_that_have_room() -> None:
    assert read_description("files", ["a://b"], "list") == (
        "Read a resource of the MCP server files. {…} in a URI stand for values. There are:\na://b"
    )
    many = read_description("files", [f"a://{n:090}" for n in range(1_000)], "files__list_resources")
    assert len(many) < 4_200
    assert many.endswith("… and 958 more: files__list_resources lists them.")


def test_a_listing_has_what_contains_a_text() -> None:
    lines = ["a://b – Bees", "a://c – Cats"]
    assert listing(lines, "") == "a://b – Bees\na://c – Cats"
    assert listing(lines, "CATS") == "a://c – Cats"
    assert listing(lines, "dogs") == "There is none."
    assert listing(["x" * 290] * 100, "").endswith("\n… and 32 more: say what they must contain.")
