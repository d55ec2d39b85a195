"""Who signs in on the page, with a key, and what is theirs."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.async_api import Locator, Page, expect

from a2a_canvas.server.accounts.api_key import new_key
from tests.free_port import free_port
from tests.loopback import serving_app
from tests.node_tools import installed_file
from tests.open_id_provider import Provider, signing_in_with
from tests.server.app_server import Served, serving
from tests.server.canvas.browser.browser_harness import OpenPage
from tests.server.canvas.browser.conftest import ANN, JOE, REFUSED, SCRIPT, Opener, Start
from tests.server.canvas.browser.page_actions import ask, document
from tests.server.canvas.browser.test_accessibility import VIOLATIONS
from tests.server.canvas.browser.test_files import saved

pytestmark = pytest.mark.asyncio(loop_scope="module")


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Sign in")


async def enter(page: Page, key: str) -> None:
    await dialog(page).get_by_label("Key or token").fill(key)
    await dialog(page).get_by_role("button", name="Sign in", exact=True).click()


async def sign_in(page: Page, key: str) -> None:
    """Enter a key that is taken, and wait until the page is back: what is behind a dialog takes no keys."""
    await enter(page, key)
    await expect(dialog(page)).to_be_hidden()


async def test_the_key_is_asked_for_first_and_a_wrong_one_is_not_taken(visit: OpenPage) -> None:
    page = visit.page
    label = await dialog(page).get_by_text("Key or token", exact=True).bounding_box()
    about = await dialog(page).get_by_text("Paste the key").bounding_box()
    assert label
    assert about
    assert label["y"] - about["y"] - about["height"] > 8
    await enter(page, new_key("ann"))
    await expect(dialog(page).get_by_role("alert")).to_have_text(
        "The server does not recognise this key. Check that you copied all of it, or ask for a new one."
    )

    await enter(page, f" {ANN}\n")
    await expect(dialog(page)).to_be_hidden()
    await expect(page.get_by_role("button", name="ann", exact=True)).to_be_visible()


async def test_behind_the_dialog_a_linked_conversation_is_not_shown_as_an_empty_one(
    open_window: Opener, guarded: Served
) -> None:
    window = await open_window(guarded.url, "/#/some-conversation")
    window.expects(REFUSED)
    await expect(dialog(window.page)).to_be_visible()
    await expect(window.page.get_by_text("Loading…")).to_be_visible()
    await expect(window.page.get_by_text("What shall we write?")).to_be_hidden()


async def test_everything_works_with_it_also_after_a_reload(visit: OpenPage) -> None:
    page = visit.page
    await sign_in(page, ANN)
    await ask(page, "many 3")
    await page.get_by_role("tab", name="two.py").click()
    assert await saved(page, "Download") == ("two.py", b"def two():\n    return 2\n")
    name, content = await saved(page, "Download all as a ZIP file")
    assert name.endswith(".zip")
    assert content.startswith(b"PK")

    await page.reload()
    await expect(document(page)).to_contain_text("def two():")
    assert ANN not in page.url


async def test_the_conversations_of_one_are_not_shown_to_the_next(visit: OpenPage) -> None:
    page = visit.page
    await sign_in(page, ANN)
    await ask(page, "quickly secret")
    await expect(document(page)).to_be_visible()
    await page.get_by_role("textbox", name="Message").fill("half a thought")

    await page.get_by_role("button", name="ann", exact=True).click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await sign_in(page, JOE)

    await expect(page.get_by_role("button", name="joe", exact=True)).to_be_visible()
    await expect(page.get_by_text("Your conversations appear here.")).to_be_visible()
    await expect(page.get_by_role("textbox", name="Message")).to_be_empty()
    await expect(page.get_by_text("secret")).to_have_count(0)


async def test_who_would_rather_not_can_sign_in_later(visit: OpenPage) -> None:
    page = visit.page
    await expect(dialog(page)).to_be_visible()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await sign_in(page, ANN)
    await expect(page.get_by_role("button", name="ann", exact=True)).to_be_visible()


async def test_whoever_tries_many_keys_waits(open_window: Opener, start: Start) -> None:
    served = await start(serving(SCRIPT, grpc=False, api_keys=f"ann={ANN}"))
    window = await open_window(served.url)
    window.expects(REFUSED)
    await expect(dialog(window.page)).to_be_visible()
    while (
        await served.http.get("/artifacts", headers={"Authorization": f"Bearer {new_key('ann')}"})
    ).status_code != 429:
        pass
    await enter(window.page, new_key("ann"))
    await expect(dialog(window.page).get_by_role("alert")).to_contain_text(
        "Too many wrong credentials came from your address. Try"
    )


async def test_whoever_asks_too_much_with_a_right_key_is_told_that(open_window: Opener, start: Start) -> None:
    served = await start(serving(SCRIPT, grpc=False, api_keys=f"ann={ANN}", max_requests_per_user=1))
    window = await open_window(served.url)
    window.expects(REFUSED)
    await expect(dialog(window.page)).to_be_visible()
    await served.http.get("/artifacts", headers={"Authorization": f"Bearer {ANN}"})
    await enter(window.page, ANN)
    await expect(dialog(window.page).get_by_role("alert")).to_contain_text("Request limit reached (1 per minute)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nothing_in_the_dialogs_is_out_of_reach(open_window: Opener, guarded: Served, scheme: str) -> None:
    window = await open_window(guarded.url, color_scheme=scheme, reduced_motion="reduce")
    window.expects(REFUSED)
    page = window.page
    await enter(page, new_key("ann"))
    await expect(dialog(page).get_by_role("alert")).not_to_be_empty()
    await page.evaluate(installed_file("axe-core", "axe.min.js"))
    assert await page.evaluate(VIOLATIONS) == []

    await shared_link(window, f"cherry{scheme}", "read")
    await expect(page.get_by_role("button", name="Revoke the share of Link")).to_be_visible()
    assert await page.evaluate(VIOLATIONS) == []


async def test_another_server_never_gets_the_key_of_this_one(open_window: Opener, start: Start) -> None:
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    other = await start(serving(SCRIPT, grpc=False, cors_origin=origin, api_keys=f"joe={JOE}"))
    home = await start(serving(SCRIPT, grpc=False, port=port, page=other.url, api_keys=f"ann={ANN}"))
    window = await open_window(home.url, others=[other.url])
    window.expects(REFUSED)
    page = window.page
    await sign_in(page, ANN)
    await expect(page.get_by_role("button", name="ann", exact=True)).to_be_visible()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(str(request.headers)) if request.url.startswith(other.url) else None)
    await page.goto(f"{home.url}/?server={quote(other.url, safe='')}")
    await sign_in(page, JOE)
    await expect(page.get_by_role("button", name="joe", exact=True)).to_be_visible()
    assert sent
    assert not [headers for headers in sent if ANN in headers]


async def shared_link(visit: OpenPage, about: str, level: str) -> str:
    """Ann's conversation, and the link that she makes of it in the dialog."""
    page = visit.page
    await sign_in(page, ANN)
    await ask(page, f"quickly {about}")
    await expect(document(page)).to_be_visible()
    await page.get_by_role("button", name=f"Actions for quickly {about}").click()
    await page.get_by_role("menuitem", name="Share…").click()
    dialog = page.get_by_role("dialog", name=f"Share “quickly {about}”")
    link = dialog.get_by_role("form", name="Create a link")
    await expect(link.get_by_label("Ends").locator("option:checked")).to_have_text("In a week")
    await link.get_by_label("They may").select_option(level)
    await link.get_by_role("button", name="Create link").click()
    return await dialog.get_by_label("Link", exact=True).input_value()


@pytest.mark.parametrize("level", ["read", "comment"])
async def test_a_link_to_read_or_comment_shows_the_text_and_does_not_change_it(
    visit: OpenPage, open_window: Opener, guarded: Served, level: str
) -> None:
    link = await shared_link(visit, f"plum-{level}", level)
    guest = await open_window("", link)
    guest.expects("request: |status of 40[13]")
    page = guest.page

    may = {"read": "You can read it, but not change it.", "comment": "You can comment and suggest changes."}[level]
    await expect(page.get_by_text(f"ann shared this conversation with you. {may}")).to_be_visible()
    await expect(document(page)).to_contain_text("The first paragraph stays.")
    await expect(page.get_by_role("textbox", name="Message")).to_be_hidden()
    await expect(page.get_by_role("button", name="Undo", exact=True)).to_be_disabled()
    await expect(page.get_by_role("button", name="New conversation")).to_be_hidden()
    await expect(page.get_by_role("button", name="Guest")).to_be_visible()
    assert "share" not in page.url

    dialog = visit.page.get_by_role("dialog", name=f"Share “quickly plum-{level}”")
    await dialog.get_by_role("button", name="Revoke the share of Link").click()
    await expect(dialog.get_by_text("Not shared with anyone.")).to_be_visible()
    await expect(page.get_by_role("dialog", name="Sign in")).to_be_visible()


async def test_a_user_edits_what_was_shared_to_edit(visit: OpenPage, open_window: Opener, guarded: Served) -> None:
    await shared_link(visit, "pear", "read")
    page = visit.page
    dialog = page.get_by_role("dialog", name="Share “quickly pear”")
    invitation = dialog.get_by_role("form", name="Invite a user")
    await invitation.get_by_label("User").press("Enter")
    await expect(dialog.get_by_role("listitem")).to_have_count(1)
    visit.expects("status of 400")
    for name, why in (("  ", "Enter the name of a user."), ("ann", "Invite someone other than its owner")):
        await invitation.get_by_label("User").fill(name)
        await invitation.get_by_role("button", name="Invite").click()
        await expect(dialog.get_by_role("alert")).to_contain_text(why)
    await invitation.get_by_label("User").fill("joe")
    await invitation.get_by_label("They may").select_option("edit")
    await invitation.get_by_role("button", name="Invite").click()
    await expect(dialog.get_by_role("listitem").filter(has_text="joe may edit, until")).to_be_visible()

    window = await open_window(guarded.url)
    window.expects(REFUSED)
    await sign_in(window.page, JOE)
    await window.page.get_by_role("link", name="quickly pear").click()
    await ask(window.page, "quickly pear")
    await expect(document(window.page).get_by_text("Version 2", exact=True)).to_be_visible()
    await window.page.get_by_role("button", name="Actions for quickly pear").click()
    await window.page.get_by_role("menuitem", name="Leave…").click()
    await window.page.get_by_role("dialog").get_by_role("button", name="Leave").click()
    await expect(window.page.get_by_role("link", name="quickly pear")).to_be_hidden()


async def test_somebody_who_is_signed_in_opens_a_link_as_a_guest_and_stays_signed_in(
    visit: OpenPage, open_window: Opener, guarded: Served
) -> None:
    link = await shared_link(visit, "quince", "edit")
    window = await open_window(guarded.url)
    window.expects(f"{REFUSED}|status of 404|status of 403")
    page = window.page
    await sign_in(page, JOE)
    await expect(page.get_by_role("button", name="joe", exact=True)).to_be_visible()

    await page.goto(link)
    question = page.get_by_role("dialog", name="Open the link as a guest?")
    await expect(question).to_contain_text("joe stays signed in everywhere else.")
    await question.get_by_role("button", name="Open as a guest").click()
    await expect(document(page)).to_contain_text("The first paragraph stays.")
    await page.reload()
    await page.get_by_role("button", name="Guest").click()
    await page.get_by_role("menuitem", name="Back to joe").click()
    await expect(page.get_by_role("button", name="joe", exact=True)).to_be_visible()


async def test_the_owner_opens_a_link_under_the_own_name(visit: OpenPage) -> None:
    link = await shared_link(visit, "medlar", "read")
    page = visit.page
    await page.goto(link)
    question = page.get_by_role("dialog", name="Open the link as ann, or as a guest?")
    await question.get_by_role("button", name="Open as ann").click()
    await expect(document(page)).to_contain_text("The first paragraph stays.")
    await expect(page.get_by_role("button", name="ann", exact=True)).to_be_visible()


async def test_a_link_is_copied_where_the_browser_has_no_clipboard_for_the_page(visit: OpenPage) -> None:
    page = visit.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.evaluate("navigator.clipboard.constructor.prototype.write = undefined")
    link = await shared_link(visit, "sloe", "read")
    await page.get_by_role("dialog").get_by_role("button", name="Copy").click()
    assert await page.evaluate("navigator.clipboard.readText()") == link


async def test_a_provider_signs_somebody_in_until_they_sign_out(open_window: Opener, start: Start) -> None:
    issuer = await start(serving_app(Provider().app))
    served = await start(serving(SCRIPT, grpc=False, **signing_in_with(issuer)))
    served.gate.open()
    window = await open_window(served.url, others=[issuer])
    window.expects(REFUSED)
    page = window.page
    await dialog(page).get_by_role("button", name="Sign in with your account").click()
    await expect(page.get_by_role("button", name="ann", exact=True)).to_be_visible()
    await ask(page, "quickly plum")
    await expect(document(page)).to_contain_text("The first paragraph stays.")
    assert not await page.evaluate("document.cookie")

    await page.get_by_role("button", name="ann", exact=True).click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(dialog(page)).to_be_visible()
