"""A script is read whole and refused with file, line and reason."""

import pytest
import yaml

from a2a_canvas.server.agent.models.rehearsal.rehearsal import SCRIPT
from a2a_canvas.server.agent.models.script.placeholders import MAX_CHARACTERS, BadValue, Repeat, fill, fill_tree
from a2a_canvas.server.agent.models.script.rules import RuleMatch, read_rules
from a2a_canvas.server.agent.models.script.yaml import ScriptError, Source


@pytest.fixture
def read(tmp_path):
    def read_text(text: str | bytes):
        file = tmp_path / "s.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_rules(str(file))

    return read_text


def rule(rounds: str, match: str = 'text: "(?P<n>.+)"') -> str:
    return f"rules:\n  - match: {{{match}}}\n    rounds:\n{rounds}\n"


def test_the_example_of_the_specification_is_read(read) -> None:
    rules = read("""
rules:
  - match: {text: "regex on the user's text", message_id: "regex"}
    rounds:
      - thinking: "…"
        text: {repeat: "0123456789", times: 8000}
        tools: [{name: artifact_update, input: {append: false, artifact: {parts: [{kind: text, text: x}]}}}]
        chunk: 20
        delay: 0.0
        error: {status: 529, after: 3, times: 1}
""")
    (one,) = rules[0].rounds
    assert fill(one.text, {}) == "0123456789" * 8000
    assert list(one.tools[0].input) == ["append", "artifact"]
    assert (one.chunk, one.delay, one.error.after) == (20, 0.0, 3)


def test_write_is_short_for_a_call_of_artifact_update(read) -> None:
    (one,) = read(
        rule("      - write: [{name: 'tea.md', text: Hot., description: On tea}, {name: milk, text: Cold.}]")
    )[0].rounds
    tea, milk = one.calls
    assert tea.name == "artifact_update"
    assert tea.input == {
        "append": False,
        "last_chunk": True,
        "artifact": {
            "artifact_id": "tea",
            "name": "tea.md",
            "description": "On tea",
            "parts": [{"kind": "text", "mimeType": "text/markdown", "text": "Hot."}],
        },
    }
    assert milk.input["artifact"] == {
        "artifact_id": "milk",
        "name": "milk",
        "parts": [{"kind": "text", "text": "Cold."}],
    }


def test_a_change_takes_the_place_of_rounds(read) -> None:
    one, two = read("""
rules:
  - {match: {text: a}, change: add, with: "The end.", say: "{document} ends."}
  - {match: {text: b}, change: rewrite, with: {"a(b)": '\\1'}}
""")
    assert (one.change, one.table, one.say) == ("add", {"": "The end."}, "{document} ends.")
    assert (two.table, two.say) == ({"a(b)": "\\1"}, "{document} is changed.")


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{topic:slug}.md", "green-tea-uber-c.md"),
        ("{topic:capital}!", "Green tea & Über C++!"),
        ("{topic:shout} {other:slug}", "{topic:shout} {other:slug}"),
    ],
)
def test_groups_have_forms(text: str, filled: str) -> None:
    assert fill(text, {"topic": "green tea & Über C++"}) == filled


@pytest.mark.parametrize(("text", "name"), [("茶", "茶"), ("한국", "한국"), ("!?", "document"), ("a" * 60, "a" * 48)])
def test_a_slug_is_never_empty_nor_long(text: str, name: str) -> None:
    assert fill("{t:slug}", {"t": text}) == name


def test_what_is_left_out_has_a_default(read) -> None:
    (one,) = read(rule("      - {}"))[0].rounds
    assert (one.thinking, one.text, one.tools, one.chunk, one.delay, one.error) == ("", "", (), 20, 0.0, None)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "the script: a mapping is needed"),
        ("rules: []", 1, "rules: at least one is needed"),
        ("rulez: []", 1, "the key `rules` is missing"),
        ("rules: [\n", 2, "not YAML"),
        ("rules:\n  - a: b\n c: d\n", 3, "not YAML"),
        ("rules: []\n---\nrules: []\n", 2, "not YAML"),
        ("rules:\n  - one\n", 2, "rules.0: a mapping is needed"),
        ("rules:\n- match: {text: a}\n", 2, "rules.0: the key `rounds` is missing"),
        ("rules:\n- match: {text: a}\n  change: louder\n", 3, "rules.0.change: must be one of shorter, extend,"),
        ("rules:\n- match: {text: a}\n  change: replace\n", 2, "the change `replace` needs a group `old` of the match"),
        ("rules:\n- match: {text: a}\n  change: rewrite\n  with: {a: '\\1'}\n", 2, "rules.0: not a replacement:"),
        ("rules:\n- match: {text: a}\n  change: add\n  with: {'(': x}\n", 4, "not a regular expression"),
        ("rules:\n- rounds: [{}]\n", 2, "rules.0: the key `match` is missing"),
        (rule("     - {}", match=""), 2, "rules.0.match: `text`, `message_id` or `selection` is needed"),
        (rule("     - {}") + "    answers: []", 5, "rules.0.answers: at least one is needed"),
        (rule("     - {}") + "    answers:\n    - rounds: [{}]", 6, "rules.0.answers.0: the key `match` is missing"),
        (
            rule("     - {}") + "    answers:\n    - match: {text: a}\n      rounds: [{chunk: '{m}'}]",
            7,
            "not '{m}' (the rule has no group of that name)",
        ),
        (rule("     - {}", match="text: '(a'"), 2, "rules.0.match.text: not a regular expression: missing )"),
        (rule("     - {}", match="text: 5"), 2, "a regular expression is needed, as a string"),
        (rule("     - {}", match="txt: a"), 2, "rules.0.match.txt: unknown key `txt`. Did you mean `text`?"),
        (
            rule("     - text: a\n       texts: b"),
            5,
            "rules.0.rounds.0.texts: unknown key `texts`. Did you mean `text`?",
        ),
        (rule("     - text: a\n     - text: 5"), 5, "rules.0.rounds.1.text: a string is needed, or {repeat"),
        (rule("     - text:\n         repeat: a\n         times: -1"), 6, "at least 0 is needed, not -1"),
        (rule("     - text:\n         repeat: a"), 4, "rules.0.rounds.0.text: the key `times` is missing"),
        (rule("     - chunk: 0"), 4, "rules.0.rounds.0.chunk: a whole number of at least 1 is needed, not 0"),
        (rule("     - chunk: 1.5"), 4, "a whole number"),
        (rule("     - chunk: yes"), 4, "a whole number"),
        (rule("     - chunk: '{m}'"), 4, "not '{m}' (the rule has no group of that name)"),
        (rule("     - delay: .nan"), 4, ".nan is not a number in JSON"),
        (rule("     - delay: soon"), 4, "rules.0.rounds.0.delay: a number of seconds of at least 0 is needed"),
        (rule("     - delay: -1"), 4, "a number of seconds of at least 0 is needed, not -1"),
        (rule("     - delay: true"), 4, "a number of seconds"),
        (rule("     - error:\n         after: 1"), 4, "rules.0.rounds.0.error: the key `status` is missing"),
        (rule("     - tools: {name: a}"), 4, "rules.0.rounds.0.tools: a list is needed"),
        (rule("     - tools:\n       - name: a\n         input: [1]"), 6, "tools.0.input: a mapping is needed"),
        (
            rule("     - tools:\n       - name: a\n         input:\n           b:\n           - {repeat: x, times: y}"),
            8,
            "rules.0.rounds.0.tools.0.input.b.0.times: a whole number of at least 0 is needed, not 'y'",
        ),
        (
            rule('     - tools:\n       - name: a\n         input:\n           b: c\n           artifact_id: "{m}\\0"'),
            8,
            "rules.0.rounds.0.tools.0.input.artifact_id: must not contain the character NUL",
        ),
        (
            rule(
                '     - tools:\n       - name: a\n         input:\n          artifact:\n           artifact_id: "i\\n"'
            ),
            8,
            "tools.0.input.artifact.artifact_id: must not contain the control character U+000A",
        ),
        (rule("     - text: a\n       text: b"), 5, "the key `text` is there twice"),
        (rule("     - text: !!python/name:os.system x"), 4, "is not for scripts"),
        (rule("     - tools:\n       - {name: a, input: {b: &x [*x]}}"), 5, "a value that contains itself"),
        (rule("     - {[1]: 2}"), 4, "a key must be a string"),
        (rule('     - text: "\\ud800"'), 4, "half a surrogate pair"),
        (rule("     - chunk: !!int x"), 4, "not a int: x"),
        ("a: 1\nb: \x01\n", 2, "not YAML"),
        (b"a: 1\n\xff", 2, "not UTF-8"),
        ("[" * 100_000, 1, "nested too deeply"),
    ],
)
def test_a_broken_script_is_refused_with_file_line_and_reason(read, tmp_path, text, line, reason) -> None:
    with pytest.raises(ScriptError) as caught:
        read(text)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "s.yaml"), line)
    assert reason in caught.value.reason
    assert str(caught.value) == f"{tmp_path / 's.yaml'}:{line}: {caught.value.reason}"
    assert "\n" not in str(caught.value)


def test_an_id_that_depends_on_a_group_is_not_judged_when_the_script_is_read(read) -> None:
    ((one,),) = (one.tools for one in read(rule('     - tools: [{name: a, input: {artifact_id: "{n}\\n"}}]'))[0].rounds)
    assert one.input == {"artifact_id": "{n}\n"}


def test_of_several_faults_the_first_in_the_file_is_told(read) -> None:
    with pytest.raises(ScriptError, match=r":4: .*chunk"):
        read(rule("     - chunk: 0\n       delay: x\n     - text: 1"))


def test_a_missing_file_is_refused_by_name(tmp_path) -> None:
    with pytest.raises(ScriptError, match=r"none\.yaml: cannot be read: No such file or directory"):
        read_rules(str(tmp_path / "none.yaml"))


def test_numbers_that_depend_on_a_group_are_not_checked_yet(read) -> None:
    (one,) = read(rule("     - {chunk: '{n}', delay: '{n}', error: {status: '{n}', after: '{n}', times: '1{n}'}}"))[
        0
    ].rounds
    assert (one.chunk, one.delay, one.error.times) == ("{n}", "{n}", "1{n}")


def test_values_are_taken_as_they_are_written(read) -> None:
    text = (
        "     - tools: [{name: a, input: {on: 2026-01-02, 1: 1, x: [true, null, 1.5, '1'], 'e': \"\\ud83d\\ude00\"}}]"
    )
    assert read(rule(text))[0].rounds[0].tools[0].input == {
        "on": "2026-01-02",
        "1": 1,
        "x": [True, None, 1.5, "1"],
        "e": "😀",
    }


def test_where_there_is_no_libyaml_values_and_lines_are_the_same(monkeypatch) -> None:
    read_by_libyaml = Source.read(str(SCRIPT))
    monkeypatch.setattr("a2a_canvas.server.agent.models.script.yaml._FastLoader", yaml.SafeLoader)
    assert Source.read(str(SCRIPT)) == read_by_libyaml


def test_anchors_and_merge_keys_work(read) -> None:
    rounds = read(rule("     - &one {text: a, chunk: 5}\n     - <<: *one\n       text: b"))[0].rounds
    assert [(one.text, one.chunk) for one in rounds] == [("a", 5), ("b", 5)]


def test_groups_come_from_both_patterns_and_both_must_match() -> None:
    match = RuleMatch(text=r"(?P<n>\d+) x (?P<opt>y)?", message_id="^m-(?P<id>.*)$")
    assert match.groups("3 x ", "m-7") == {"n": "3", "opt": "", "id": "7"}
    assert match.groups("3 x ", "7") is None
    assert match.groups("x", "m-7") is None


def test_only_the_groups_are_replaced_and_only_once() -> None:
    groups = {"a": "{b}", "b": "2"}
    assert fill("{a} {b} {c} {{b}} {} { b }", groups) == "{b} 2 {c} {2} {} { b }"


def test_a_string_may_be_repeated_wherever_it_stands() -> None:
    inner = Repeat(repeat="{a}", times=2)
    tree = {"{a}": [Repeat(repeat=inner, times=3), {"k": 1, "n": None}]}
    assert fill_tree(tree, {"a": "x"}) == {"x": ["xxxxxx", {"k": 1, "n": None}]}


def test_data_that_only_looks_like_a_repeat_stays_data(read) -> None:
    text = "     - tools: [{name: a, input: {x: {repeat: true, times: 2}, y: {repeat: a, times: 2, z: 1}}}]"
    tree = read(rule(text))[0].rounds[0].tools[0].input
    assert fill_tree(tree, {}) == {"x": {"repeat": True, "times": 2}, "y": {"repeat": "a", "times": 2, "z": 1}}


def test_a_strangers_number_cannot_fill_the_memory() -> None:
    with pytest.raises(BadValue, match="more than the limit"):
        fill(Repeat.model_construct(repeat="ab", times="{n}"), {"n": str(MAX_CHARACTERS)})


def test_a_selection_is_matched_in_edits_alone() -> None:
    match = RuleMatch(selection=r"^(?P<what>\w+)")
    assert match.groups("any", "m-1", "tea\n") == {"what": "tea"}
    assert match.groups("tea", "m-1", "") is None
    assert match.groups("tea", "m-1") is None
    assert RuleMatch(selection="^$").groups("any", "m-1", "") == {}


def test_an_edit_matches_by_its_text_and_id_as_well_and_all_that_is_given_must_match() -> None:
    assert RuleMatch(text="up").groups("up", "m-1", "tea") == {}
    match = RuleMatch(text="(?P<a>u)p", message_id="(?P<a>m)(?P<b>-)", selection="(?P<a>t)(?P<b>e)")
    assert match.names == {"a", "b"}
    assert match.groups("up", "m-1", "tea") == {"a": "u", "b": "e"}
    assert match.groups("down", "m-1", "tea") is None
    assert match.groups("up", "1", "tea") is None
    assert match.groups("up", "m-1", "coffee") is None
