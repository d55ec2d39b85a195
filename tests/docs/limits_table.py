"""The tables of docs/limits.md: `python -m tests.docs.limits_table`.

Rule 1: a row says of some entrances (entrances.py) how much may be sent, what becomes of more, and which test shows it.
        Every entrance is in one row. The bounds are those of the code.
Rule 2: `*` in a row stands for any characters, for what means the same everywhere, such as ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from a2a_canvas.server.accounts.sharing import MAX_FROM_ONE, MAX_OF_USER, MAX_SHARES
from a2a_canvas.server.agent.intent import MAX_SELECTIONS
from a2a_canvas.server.protocols.a2a_v1.operations.list_tasks import MAX_LIST_TASKS_PAGE_SIZE
from a2a_canvas.server.protocols.a2a_v1.operations.push_operations import MAX_SECRET
from a2a_canvas.server.protocols.agui.input import MAX_MESSAGES
from a2a_canvas.server.protocols.agui.older.request import MAX_CONTENTS
from a2a_canvas.server.protocols.agui.routes import MAX_BODY_VALUES
from a2a_canvas.server.protocols.artifacts.context_forms import MAX_NAME, MAX_PAGE_SIZE
from a2a_canvas.server.protocols.artifacts.presence_forms import MAX_WINDOW
from a2a_canvas.server.protocols.edge.connections import MAX_FIELDS, MAX_HEAD
from a2a_canvas.server.protocols.edge.share_forms import MAX_SECONDS, MAX_USER
from a2a_canvas.server.protocols.guard.checks import (
    MAX_ITEMS,
    MAX_JSON_DEPTH,
    MAX_NUMBER,
    MAX_VALUES,
    BodyLimits,
)
from a2a_canvas.server.protocols.guard.parsing import SMALL_BODY_BYTES
from a2a_canvas.server.protocols.mcp_server.routes import MAX_VALUES as MAX_MCP_VALUES
from a2a_canvas.server.protocols.mcp_server.server import MAX_NAME as MAX_HOST_NAME
from a2a_canvas.server.protocols.mcp_server.tools import MAX_CONTEXTS
from a2a_canvas.server.push.outbox import MAX_CONFIGS
from a2a_canvas.server.push.targets import MAX_URL
from a2a_canvas.server.tasks.journal.owned_contexts import MAX_SEARCHED
from a2a_canvas.server.tasks.journal.text_search import MAX_BYTES, MAX_TEXTS, MAX_WORDS
from a2a_canvas.store.annotations.annotation import MAX_REMARK_BYTES
from a2a_canvas.store.text.unicode import MAX_ID
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/limits.md"

_PROTOCOLS = "server/protocols"
_CHECKS = f"{_PROTOCOLS}/guard/test_checks.py"
_BODIES = f"{_PROTOCOLS}/guard/test_bodies.py"
_INVALID = "`INVALID_PARAMS`"
_LIMITS = BodyLimits()


@dataclass(frozen=True, slots=True)
class Limit:
    """
    Attributes:
        of: entrances; what begins with a space is a limit of whole requests.
        test: its file below `tests/`, and its name.
    """

    of: Sequence[str]
    bound: str
    beyond: str
    test: str


REQUESTS = (
    Limit((" the head of a request",), f"{MAX_HEAD:,} bytes, {MAX_FIELDS} fields", "431, and the connection is closed",
          f"{_PROTOCOLS}/edge/test_connections.py::test_a_head_that_is_too_large_is_refused"),
    Limit((" the metadata of a gRPC call",), f"{MAX_HEAD:,} bytes", "RESOURCE_EXHAUSTED",
          f"{_PROTOCOLS}/a2a_v1/bindings/test_grpc_server.py::test_the_calls_on_one_connection_and_their_metadata_have_a_bound"),
    Limit((" the body of a message: `POST /`, `/rest/…`, `/canvas/stream`, `/mcp`; a gRPC message",),
          "`--max-body-bytes`",
          "413; JSON-RPC: -32600; gRPC: RESOURCE_EXHAUSTED",
          f"{_BODIES}::test_a_message_may_be_as_large_as_the_setting_says"),
    Limit((" any other body",), f"{SMALL_BODY_BYTES:,} bytes", "413, before it is read",
          f"{_BODIES}::test_only_messages_may_be_large"),
    Limit((" all bodies at once",), f"{_LIMITS.max_bodies_bytes:,} bytes",
          "503 with `Retry-After`; gRPC: RESOURCE_EXHAUSTED",
          f"{_BODIES}::test_beyond_the_budget_every_entrance_says_try_again_and_keeps_nothing"),
    Limit((" JSON: levels",), str(MAX_JSON_DEPTH), "`INVALID_REQUEST`",
          f"{_CHECKS}::test_depth_is_refused_at_one_level_more_than_the_limit"),
    Limit((" JSON: values",), f"{MAX_VALUES:,}; AG-UI: {MAX_BODY_VALUES:,}; MCP: {MAX_MCP_VALUES:,}",
          "`INVALID_REQUEST`",
          f"{_CHECKS}::test_values_are_counted_up_to_the_limit_and_nothing_is_parsed_behind_it"),
    Limit((" JSON: characters of a number",), f"{MAX_NUMBER:,}; a double holds it", "`INVALID_REQUEST`",
          f"{_CHECKS}::test_a_number_has_at_most_as_many_characters_as_the_limit"),
    Limit((" gRPC: values",), f"{MAX_VALUES:,}", "INVALID_ARGUMENT",
          f"{_PROTOCOLS}/pipeline/test_grpc_pipeline.py::test_a_message_with_too_many_values_is_invalid"),
    Limit((" items of a list, such as the parts of a message",), f"{MAX_ITEMS:,}", _INVALID,
          f"{_PROTOCOLS}/guard/test_proto_messages.py"
          "::test_a_list_of_messages_has_at_most_as_many_as_the_limit"),
    Limit((" all text in fields of A2A",),
          f"{_LIMITS.max_text_bytes:,} bytes, and {SMALL_BODY_BYTES:,} for ids and addresses",
          _INVALID, f"{_PROTOCOLS}/guard/test_proto_messages.py"
          "::test_more_text_than_a_message_may_have_is_refused_before_protobuf_reads_it"),
)  # fmt: skip
"""Of whole requests, on all routes."""

VALUES = (
    Limit(("route /", "route /.well-known/agent-card.json", "route /.well-known/ai-catalog.json",
           "route /.well-known/oauth-protected-resource", "route /.well-known/oauth-protected-resource/mcp",
           "route /artifacts", "route /artifacts/…",
           "route /auth/callback", "route /auth/session", "route /auth/sign-in", "route /auth/sign-out",
           "route /auth/signed-urls", "route /canvas/stream", "route /embed", "route /healthz",
           "route /mcp", "route /metrics",
           "route /page/program", "route /page/…/…", "route /readyz", "route /rest/…"),
          "the limits of requests", "404 for unknown paths",
          f"{_PROTOCOLS}/pipeline/test_http_pipeline.py::test_bad_paths_methods_and_queries_get_rests_error"),
    Limit(("AG-UI *Id", "AG-UI UserMessage.id"), f"{MAX_ID} characters, without control characters", _INVALID,
          f"{_PROTOCOLS}/agui/test_input.py::test_what_is_no_run_is_refused_by_the_name_of_its_field"),
    Limit(("A2A *.id", "A2A *Id", "A2A Message.referenceTaskIds"),
          f"{MAX_ID} characters, without control characters", _INVALID,
          f"{_PROTOCOLS}/a2a_v1/projection/test_parts.py::test_an_id_that_would_weigh_down_every_event_is_refused"),
    Limit(("A2A Part.text", "A2A Part.data", "A2A *.metadata", "A2A SendMessage.message", "AG-UI UserMessage.content",
           "AG-UI older message", "AG-UI Context.description",
           "AG-UI Context.value", "AG-UI ResumeEntry.payload", "AG-UI RunAgentInput.forwardedProps"),
          f"{_LIMITS.max_text_bytes:,} bytes for all of a message", _INVALID,
          f"{_BODIES}::test_text_is_limited_over_every_binding_and_version"),
    Limit(("A2A Part.raw",), "the limits of requests; base64", _INVALID,
          f"{_PROTOCOLS}/guard/test_proto_messages.py"
          "::test_bytes_are_base64_in_either_alphabet_with_padding_or_without"),
    Limit(("A2A Message.parts",), f"{MAX_ITEMS:,} parts", _INVALID, f"{_PROTOCOLS}/guard/test_proto_messages.py"
          "::test_a_list_of_messages_has_at_most_as_many_as_the_limit"),
    Limit(("A2A Message.extensions", "A2A Part.filename", "A2A Part.mediaType", "A2A Part.url",
           "A2A SendMessageConfiguration.acceptedOutputModes"),
          "all text of a request", _INVALID, f"{_PROTOCOLS}/guard/test_proto_messages.py"
          "::test_every_text_of_a_message_counts"),
    Limit(("A2A SendMessage.configuration", "A2A SendMessageConfiguration.taskPushNotificationConfig",
           "A2A TaskPushNotificationConfig.authentication"),
          "an object", _INVALID, f"{_PROTOCOLS}/guard/test_proto_messages.py"
          "::test_what_is_no_object_is_refused_by_the_name_of_its_field"),
    Limit(("A2A *.historyLength", "query historyLength"), "a non-negative 32-bit integer", _INVALID,
          "server/test_messages.py::test_params_are_refused_by_the_name_of_their_field"),
    Limit(("A2A *.tenant", "query tenant"), "empty", _INVALID,
          "server/test_messages.py::test_params_are_refused_by_the_name_of_their_field"),
    Limit(("A2A Message.role",), "ROLE_USER", _INVALID,
          "server/test_messages.py::test_params_are_refused_by_the_name_of_their_field"),
    Limit(("A2A *.includeArtifacts", "A2A *.returnImmediately"), "true or false", _INVALID,
          f"{_PROTOCOLS}/guard/test_rest_calls.py"
          "::test_a_query_parameter_that_does_not_fit_is_refused_and_an_unknown_one_is_ignored"),
    Limit(("A2A ListTasks.status",), "A2A's names", _INVALID,
          f"{_PROTOCOLS}/pipeline/test_http_pipeline.py::test_a_state_that_is_no_state_of_a2a_is_refused_in_json"),
    Limit(("A2A ListTasks.statusTimestampAfter",), "a time in the years 1 to 9999", _INVALID,
          f"{_PROTOCOLS}/a2a_v1/operations/test_list_tasks.py::test_the_ends_of_time_can_be_asked_for"),
    Limit(("A2A ListTasks.pageSize",), f"1 to {MAX_LIST_TASKS_PAGE_SIZE}", _INVALID,
          f"{_PROTOCOLS}/a2a_v1/operations/test_list_tasks.py::test_a_page_has_1_to_100_tasks"),
    Limit(("A2A ListTaskPushNotificationConfigs.pageSize",), f"1 to {MAX_CONFIGS}", _INVALID,
          f"{_PROTOCOLS}/a2a_v1/operations/test_push_operations.py::test_a_page_that_cannot_be_is_refused"),
    Limit(("A2A *.pageToken", "query pageToken"), "a token of this server", _INVALID,
          f"{_PROTOCOLS}/a2a_v1/operations/test_list_tasks.py::test_a_token_that_is_not_ours_is_refused"),
    Limit(("A2A TaskPushNotificationConfig.url",), f"{MAX_URL:,} characters; a public or allowed host",
          _INVALID, "server/push/test_targets.py::test_what_is_no_plain_url_is_refused"),
    Limit(("A2A TaskPushNotificationConfig.token", "A2A AuthenticationInfo.*"), f"{MAX_SECRET:,} characters", _INVALID,
          f"{_PROTOCOLS}/a2a_v1/operations/test_push_operations.py::test_a_config_that_cannot_be_used_is_refused"),
    Limit(("canvas:v1 op",), "an operation", _INVALID, "server/agent/test_intent.py"
          "::test_an_unknown_operation_is_refused_with_those_that_there_are"),
    Limit(("canvas:v1 unit", "canvas:v1 strategy", "canvas:v1 mode", "canvas:v1 level", "canvas:v1 group",
           "canvas:v1 merge", "canvas:v1 ask", "canvas:v1 format", "canvas:v1 link", "canvas:v1 selection"),
          "a name that the extension defines; true or false; an object", _INVALID,
          "server/agent/test_intent.py::test_a_field_of_the_wrong_kind_is_refused_by_its_name"),
    Limit(("canvas:v1 selections",), f"1 to {MAX_SELECTIONS} objects that do not overlap", _INVALID,
          "server/agent/edit/test_rewrite_passages.py"
          "::test_what_are_no_selections_is_refused_by_the_name_of_its_field"),
    Limit(("canvas:v1 name",), f"{MAX_ID} characters", _INVALID, "server/agent/test_intent.py"
          "::test_a_name_for_a_new_artifact_is_neither_empty_nor_longer_than_an_id"),
    Limit(("canvas:v1 window",), f"{MAX_WINDOW} characters", _INVALID, f"{_PROTOCOLS}/artifacts/test_presence_forms.py"
          "::test_what_is_no_move_is_refused_by_the_name_of_its_field"),
    Limit(("canvas:v1 replacement",), "`--max-artifact-bytes`", _INVALID,
          "server/tasks/test_annotation_store.py::test_what_is_refused_changes_nothing"),
    Limit(("canvas:v1 annotationId", "canvas:v1 by"), "256 characters; an annotation of the artifact; any name",
          _INVALID,
          "server/tasks/test_annotation_store.py::test_what_is_refused_changes_nothing"),
    Limit(("canvas:v1 artifactId", "canvas:v1 shareId", "canvas:v1 baseVersion", "canvas:v1 version",
           "canvas:v1 start", "canvas:v1 end", "canvas:v1 lineStart", "canvas:v1 lineEnd"),
          f"{MAX_ID} characters; integers, for existing versions and places", _INVALID,
          "server/test_messages.py::test_an_operation_is_refused_by_the_name_of_its_field"),
    Limit(("canvas:v1 text",), "`--max-artifact-bytes`; in a selection: the existing text", _INVALID,
          "server/agent/test_intent.py::test_what_is_put_is_a_text"),
    Limit(("canvas:v1 user",), f"{MAX_USER} characters; {MAX_SHARES:,} shares per context, {MAX_FROM_ONE} from one "
          f"owner, {MAX_OF_USER:,} per user", _INVALID,
          "server/test_sharing.py::test_what_cannot_be_shared_is_refused_with_a_reason"),
    Limit(("canvas:v1 expires",), f"a time with a zone, or seconds, up to {MAX_SECONDS:,} from now", _INVALID,
          f"{_PROTOCOLS}/edge/test_share_forms.py::test_a_share_ends_within_a_hundred_years_or_never_or_is_refused"),
    Limit(("AG-UI RunAgentInput.state",),
          "the limits of requests; only `artifact` and `selectedText` are read", _INVALID,
          f"{_PROTOCOLS}/agui/older/test_request.py"
          "::test_a_body_that_names_an_artifact_or_a_selection_is_of_the_older_form"),
    Limit(("AG-UI RunAgentInput.messages", "AG-UI older messages"), f"{MAX_MESSAGES:,} messages", _INVALID,
          f"{_PROTOCOLS}/agui/test_input.py"
          "::test_a_list_that_is_too_long_is_refused_before_anything_in_it_is_read"),
    Limit(("AG-UI RunAgentInput.context", "AG-UI older context"), f"{MAX_VALUES:,} items", _INVALID,
          f"{_PROTOCOLS}/agui/test_input.py"
          "::test_a_list_that_is_too_long_is_refused_before_anything_in_it_is_read"),
    Limit(("AG-UI RunAgentInput.resume", "AG-UI ResumeEntry.status", "AG-UI ResumeEntry.metadata"),
          "one answer, resolved or cancelled", _INVALID,
          f"{_PROTOCOLS}/agui/test_input.py::test_a_resume_that_answers_nothing_is_refused"),
    Limit(("AG-UI UserMessage.role", "AG-UI UserMessage.name", "AG-UI UserMessage.metadata"),
          "the limits of requests; only the role is read", _INVALID,
          f"{_PROTOCOLS}/agui/test_input.py::test_what_is_no_run_is_refused_by_the_name_of_its_field"),
    Limit(("AG-UI older contents",), f"{MAX_CONTENTS:,} versions of a new artifact", _INVALID,
          f"{_PROTOCOLS}/agui/older/test_request.py::test_what_is_no_request_is_refused_by_the_name_of_its_field"),
    Limit(("AG-UI older artifact", "AG-UI older code", "AG-UI older currentIndex", "AG-UI older fullMarkdown",
           "AG-UI older index", "AG-UI older type"),
          "`--max-artifact-bytes`; existing versions", _INVALID,
          f"{_PROTOCOLS}/agui/older/test_request.py"
          "::test_the_content_at_the_current_index_is_refused_by_its_place"),
    Limit(("AG-UI older language", "AG-UI older title"), f"{MAX_ID} characters, or as sent by the server", _INVALID,
          f"{_PROTOCOLS}/agui/older/test_request.py::test_a_title_or_language_has_a_limit_unless_it_was_shown"),
    Limit(("AG-UI older selectedText", "AG-UI older start", "AG-UI older end", "AG-UI older text",
           "AG-UI older lineStart", "AG-UI older lineEnd"),
          "a place in the text", _INVALID, f"{_PROTOCOLS}/agui/older/test_request.py"
          "::test_a_selection_that_the_users_own_text_does_not_have_is_refused_before_anything_is_stored"),
    Limit(("MCP *.id", "MCP *.context", "MCP uri", "MCP write_artifact.name"),
          f"{MAX_ID} characters, without control characters; those of an artifact", "a result with `isError`",
          f"{_PROTOCOLS}/mcp_server/test_tool_forms.py::test_what_is_no_id_is_refused_with_what_one_looks_like"),
    Limit(("MCP write_artifact.text", "MCP edit_artifact.new", "MCP suggest.new"),
          "`--max-artifact-bytes`, and `--max-body-bytes`", "a result with `isError`; 413",
          f"{_BODIES}::test_a_message_may_be_as_large_as_the_setting_says"),
    Limit(("MCP ask_agent.text",), f"{_LIMITS.max_text_bytes:,} bytes", "a result with `isError`",
          "server/test_mcp_hosts.py::test_what_cannot_be_done_is_refused_as_over_a2a_with_what_to_do_next"),
    Limit(("MCP comment.text", "MCP suggest.text"), f"{MAX_REMARK_BYTES:,} bytes", "a result with `isError`",
          "server/test_mcp_hosts.py::test_what_cannot_be_done_is_refused_as_over_a2a_with_what_to_do_next"),
    Limit(("MCP *.old", "MCP *.quote", "MCP *.lines"), "a passage of the text, which occurs once",
          "a result with `isError`", f"{_PROTOCOLS}/mcp_server/test_tool_passages.py"
          "::test_a_quote_is_found_where_it_is_if_it_is_there_once"),
    Limit(("MCP *.base_version", "MCP *.version", "MCP *.restore", "MCP *.reply_to"),
          "integers, for existing versions and comments", "a result with `isError`",
          "server/test_mcp_hosts.py::test_what_cannot_be_done_is_refused_as_over_a2a_with_what_to_do_next"),
    Limit(("MCP *.numbered",), "true or false", "a result with `isError`",
          f"{_PROTOCOLS}/mcp_server/test_tool_forms.py::test_wrong_arguments_are_refused_by_their_names"),
    Limit(("MCP list_artifacts.query",), f"{MAX_CONTEXTS} contexts are shown", "the rest is found by other words",
          "server/test_mcp_hosts.py::test_a_host_writes_reads_edits_and_undoes"),
    Limit(("MCP inputResponses", "MCP requestState"), "an answer to the question that the task still asks",
          "the question is asked again", "server/test_mcp_hosts.py"
          "::test_an_answer_to_an_older_question_and_no_answer_approve_and_deny_nothing"),
    Limit(("MCP clientInfo", "header mcp-session-id"), f"{MAX_HOST_NAME} characters are used of a name",
          "the rest is cut",
          "server/test_mcp_hosts.py::test_a_host_writes_reads_edits_and_undoes"),
    Limit(("query pageSize",), f"1 to {MAX_PAGE_SIZE}", _INVALID,
          f"{_PROTOCOLS}/artifacts/test_context_forms.py::test_a_wrong_parameter_is_refused"),
    Limit(("query query",), f"the head; {MAX_SEARCHED:,} contexts are searched per page",
          "`nextPageToken` continues the search", f"{_PROTOCOLS}/artifacts/test_context_forms.py"
          "::test_a_page_of_a_search_may_be_empty_and_name_the_next_one"),
    Limit(("query text",), f"{MAX_WORDS} words; {MAX_TEXTS:,} artifacts, or {MAX_BYTES // 1_000_000} million "
          "bytes of them, are decoded per page", "`INVALID_PARAMS`; `nextPageToken` continues the search",
          f"{_PROTOCOLS}/artifacts/test_context_forms.py::test_a_search_in_texts_continues_with_its_token"),
    Limit(("query download", "query raw"), "yes unless empty or 0", "yes",
          f"{_PROTOCOLS}/artifacts/test_routes.py::test_who_asks_for_the_raw_content_gets_it"),
    Limit(("query format",), "json or zip; of an artifact or a version: json, critic, docx, odt, epub or latex",
          _INVALID,
          f"{_PROTOCOLS}/artifacts/test_conversions.py"
          "::test_another_format_is_400_and_names_those_that_there_are"),
    Limit(("query from",), "an existing version, or 0", _INVALID,
          f"{_PROTOCOLS}/artifacts/test_routes.py::test_a_diff_from_no_version_is_400_and_names_the_range"),
    Limit(("query offset", "query live", "query cursor", "query task"),
          f"-1, now or an offset of this server; long-poll or sse; 18 digits; a task's id of {MAX_ID} characters",
          f"{_INVALID}; 404; `OFFSET_GONE`",
          f"{_PROTOCOLS}/artifacts/test_change_stream.py::test_a_wrong_parameter_is_named"),
    Limit(("query code", "query state", "query return"), "those of a sign-in that started here",
          "a page with the reason (400, 403, 429)",
          "server/test_sign_in.py::test_a_browser_that_is_not_signed_in_is_told_why_and_led_back"),
    Limit(("body name",), f"{MAX_NAME} characters", _INVALID,
          f"{_PROTOCOLS}/artifacts/test_context_forms.py::test_what_is_no_name_is_refused"),
    Limit(("body agentsSuggest",), "true or false", _INVALID,
          f"{_PROTOCOLS}/artifacts/test_context_forms.py::test_what_is_no_name_is_refused"),
    Limit(("body path",), "a path of this server", "400",
          "server/test_sign_in.py::test_what_is_no_path_is_not_signed"),
    Limit(("header accept-encoding",), "codings of the file", "the file uncompressed",
          f"{_PROTOCOLS}/page/test_routes.py::test_a_file_is_compressed_as_the_browser_takes_it"),
    Limit(("header accept",), "media types of the response", "the first one, or 406",
          f"{_PROTOCOLS}/edge/test_http_requests.py"
          "::test_json_is_the_answer_unless_the_header_prefers_something_else"),
    Limit(("header a2a-extensions", "header x-a2a-extensions"), "extensions in the card",
          "ignored", "server/test_presentation.py::test_an_extension_that_is_unknown_is_not_echoed"),
    Limit(("header a2a-version", "query a2a-version"), "0.3 or 1.0", "`VERSION_NOT_SUPPORTED`",
          f"{_PROTOCOLS}/pipeline/test_http_pipeline.py::test_a_version_in_the_query_is_checked_as_one_in_the_header"),
    Limit(("header authorization",), "one; Bearer and a key, token or link token", "401",
          f"{_PROTOCOLS}/identity/test_credentials.py::test_anything_else_is_malformed"),
    Limit(("header cookie",), "one of its name, signed by this server", "ignored",
          f"{_PROTOCOLS}/identity/test_browser_sessions.py"
          "::test_a_cookie_counts_if_it_is_the_only_one_of_its_name"),
    Limit(("header a2a-canvas-page",), "present, from this server's page", "the cookie is ignored",
          f"{_PROTOCOLS}/identity/test_browser_sessions.py::test_neither_does_what_has_no_header_of_the_page"),
    Limit(("header origin",), "this server, or a `--cors-origin`", "403",
          f"{_PROTOCOLS}/guard/test_hosts.py::test_no_other_page_may"),
    Limit(("header sec-fetch-dest", "header sec-fetch-site"), "those of this server's page",
          "the cookie is ignored", f"{_PROTOCOLS}/identity/test_browser_sessions.py"
          "::test_another_one_does_not_but_it_may_link_to_what_can_be_read"),
    Limit(("query signature",), "this server's, for this address, with GET", "401",
          "server/test_sign_in.py::test_it_is_for_that_address_and_for_reading_alone"),
    Limit(("header content-encoding",), "identity", "415",
          f"{_PROTOCOLS}/pipeline/test_http_pipeline.py::test_a_compressed_body_is_refused_unread_on_every_route"),
    Limit(("header content-length",), "the limits of requests", "413, before it is read",
          f"{_BODIES}::test_only_messages_may_be_large"),
    Limit(("header content-type",), "JSON", "`CONTENT_TYPE_NOT_SUPPORTED`",
          f"{_PROTOCOLS}/pipeline/test_http_pipeline.py::test_other_content_types_are_refused_in_each_form"),
    Limit(("header host",), "a name of the server", "421",
          f"{_PROTOCOLS}/guard/test_hosts.py::test_any_other_name_is_refused"),
    Limit(("header if-modified-since", "header if-none-match"), "the head", "ignored",
          f"{_PROTOCOLS}/edge/test_http_requests.py::test_a_tag_beats_a_date"),
    Limit(("header last-event-id",), "an event id of this stream", "everything is sent",
          f"{_PROTOCOLS}/artifacts/test_event_stream.py"
          "::test_what_changed_since_is_missed_and_all_of_it_if_that_cannot_be_known"),
    Limit(("header x-forwarded-proto",), "from a proxy in `FORWARDED_ALLOW_IPS`", "ignored",
          "server/test_sign_in.py::test_behind_a_proxy_with_https_the_cookies_are_secure"),
    Limit(("header x-forwarded-for",), "from a proxy in `FORWARDED_ALLOW_IPS`",
          "ignored", f"{_PROTOCOLS}/edge/test_origins.py::test_a_trusted_proxy_says_whom_it_calls_for_as_over_http"),
)  # fmt: skip
"""Of single values. The first that matches an entrance is its row."""


def row_of(entrance: str) -> Limit | None:
    """The row with an entrance."""
    return next((row for row in VALUES if any(fnmatchcase(entrance, each) for each in row.of)), None)


def table(rows: Sequence[Limit]) -> Iterator[str]:
    yield "| what | bound | beyond it |"
    yield "|---|---|---|"
    for row in rows:
        what = grouped(row.of) if row in VALUES else ", ".join(each.strip() for each in row.of)
        beyond = "" if row in VALUES and row.beyond == _INVALID else row.beyond
        yield f"| {what} | {row.bound} | {beyond} |".replace("  |", " |")


def grouped(entrances: Sequence[str]) -> str:
    """The names of some entrances, each kind once: "A2A: `*.tenant`; query: `tenant`"."""
    kinds: dict[str, list[str]] = {}
    for each in entrances:
        kinds.setdefault(_kind_of(each), []).append(each[len(_kind_of(each)) :].strip())
    return "; ".join(
        f"{'' if kind == 'route' else f'{kind}: '}{', '.join(f'`{name}`' for name in names)}"
        for kind, names in kinds.items()
    )


def _kind_of(entrance: str) -> str:
    return "AG-UI older" if entrance.startswith("AG-UI older ") else entrance.split(" ", 1)[0]


def page() -> str:
    """All of docs/limits.md."""
    return "\n".join(
        (
            "# Limits",
            "",
            "<!-- Generated by `python -m tests.docs.limits_table`. -->",
            "",
            "Everything that a client can send has a bound. [errors.md](errors.md) lists the errors;",
            "[quotas.md](quotas.md) explains what users may consume over time.",
            "",
            "## Requests",
            "",
            *table(REQUESTS),
            "",
            "## Values",
            "",
            "A value beyond its bound is `INVALID_PARAMS`, unless the last column says otherwise. A2A 0.3 is converted",
            "to 1.0, and has the same bounds. `*` matches any characters. Fields marked canvas:v1 are those of",
            "operations, also under `/artifacts/…/shares` and `…/presence`; fields marked AG-UI older are those of",
            "[legacy requests](ag-ui.md#legacy-requests). Other fields are ignored.",
            "",
            *table(VALUES),
            "",
        )
    )


if __name__ == "__main__":
    PAGE.write_text(page())
