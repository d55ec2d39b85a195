"""The pieces in rehearsal.yaml: what is said to be code runs, what is said to be data can be read, and facts add up."""

import ast
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from a2a_canvas.server.agent.models.rehearsal.rehearsal import SCRIPT
from a2a_canvas.server.agent.models.script.passages import named_passage
from a2a_canvas.server.agent.models.script.placeholders import fill
from a2a_canvas.server.agent.models.script.rules import ScriptRule, read_rules
from a2a_canvas.server.agent.models.script.text_transforms import STEPS, Passage, transform
from a2a_canvas.server.agent.text.file_language import language_of
from a2a_canvas.store.text.spans import Span

RULES = read_rules(str(SCRIPT))
GROUPS = {name: "red" for rule in RULES for name in rule.match.names}
PIECES = {
    document.name: fill(document.text, GROUPS)
    for rule in RULES
    for one in rule.rounds
    for document in one.write
    if "{" not in document.name
}


def of_kind(*endings: str) -> list[str]:
    return sorted(name for name in PIECES if name.endswith(endings))


@pytest.mark.parametrize("name", of_kind(".py"))
def test_programs_run_and_their_tests_pass(name: str) -> None:
    assert ast.get_docstring(ast.parse(PIECES[name]))
    tests = re.findall(r"^ *def (test_\w+)", PIECES[name], re.MULTILINE)
    assert tests
    if name != "skeleton.py":  # says itself that it is none
        subprocess.run([sys.executable, "-c", PIECES[name]], check=True, capture_output=True)


@pytest.mark.parametrize("name", of_kind(".sh"))
def test_bash_accepts_scripts_that_say_how_they_are_used(name: str) -> None:
    subprocess.run(["bash", "-n"], input=PIECES[name].encode(), check=True)
    assert f"# Usage: {name} " in PIECES[name]


def test_the_backup_holds_the_folder_and_seven_are_kept(tmp_path: Path) -> None:
    (tmp_path / "my notes").mkdir()
    (tmp_path / "my notes" / "a.txt").write_text("one")
    old = [tmp_path / f"my notes-20{year}-01-01-000000.tar.gz" for year in range(10, 18)]
    for archive in (*old, tmp_path / "my notes-of-mine.tar.gz"):
        archive.touch()
    command = ["bash", "-s", "--", str(tmp_path / "my notes"), str(tmp_path)]
    done = subprocess.run(command, input=PIECES["backup.sh"].encode(), check=True, capture_output=True)
    with tarfile.open(done.stdout.decode().strip()) as archive:
        assert archive.getnames() == ["my notes", "my notes/a.txt"]
    assert [each.exists() for each in old] == [False, False, *[True] * 6]
    assert (tmp_path / "my notes-of-mine.tar.gz").exists()


@pytest.mark.parametrize(("options", "name"), [([], "My Photo.JPG"), (["--yes"], "my-photo.jpg")])
def test_renaming_does_nothing_without_yes(tmp_path: Path, options: list[str], name: str) -> None:
    (tmp_path / "My Photo.JPG").touch()
    command = ["bash", "-s", "--", *options, str(tmp_path / "My Photo.JPG")]
    subprocess.run(command, input=PIECES["rename.sh"].encode(), check=True, capture_output=True)
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", of_kind(".json"))
def test_json_is_json(name: str) -> None:
    assert json.loads(PIECES[name])


@pytest.mark.parametrize("name", of_kind(".svg"))
def test_svg_is_xml(name: str) -> None:
    assert ElementTree.fromstring(PIECES[name]).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("name", of_kind(".csv"))
def test_each_row_of_a_table_has_as_many_cells_as_the_first(name: str) -> None:
    assert len({line.count(",") for line in PIECES[name].splitlines()}) == 1


@pytest.mark.parametrize("name", [name for name in of_kind(".md") if "|---" in PIECES[name]])
def test_each_row_of_a_markdown_table_has_as_many_cells_as_the_first(name: str) -> None:
    rows = re.findall(r"(?:^\|.*\n)+", PIECES[name], re.MULTILINE)
    assert all(len({line.count("|") for line in table.splitlines()}) == 1 for table in rows)


def test_the_sum_of_the_proposal_is_right() -> None:
    costs = [int(cost.replace(",", "")) for cost in re.findall(r"\| \**([\d,]+)\** \|", PIECES["garden-proposal.md"])]
    assert sum(costs[:-1]) == costs[-1]


def test_paragraphs_fit_a_terminal_of_80_columns() -> None:
    prose = [line for name in of_kind(".md") for line in PIECES[name].splitlines() if re.match(r"[A-Za-z“*]", line)]
    assert {line for line in prose if len(line) > 80} == set()


def test_every_group_that_a_piece_names_is_one_of_its_match() -> None:
    for rule in RULES:
        said = [rule.say, *rule.table.values(), *(one.text for one in rule.rounds)]
        written = [text for one in rule.rounds for each in one.write for text in (each.name, each.text)]
        replaced = {name for pattern in rule.table for name in re.compile(pattern).groupindex}
        known = rule.match.names | replaced | {"title", "first", "sections", "words", "document", "answer", "what"}
        assert set(re.findall(r"\{([a-z]+)(?::[a-z]+)?\}", " ".join(map(str, [*said, *written])))) <= known


def test_a_rule_with_together_is_one_whose_pieces_need_no_groups_but_its_own() -> None:
    assert all(rule.rounds and rule.rounds[0].write for rule in RULES if rule.together)


def test_the_last_rule_matches_everything() -> None:
    assert RULES[-1].match.groups("", "") == {}


def does_something(suggestion: str, name: str, text: str) -> bool:
    """Whether a message that a piece suggests does something to it."""
    rule, groups = next((r, g) for r in RULES if (g := r.match.groups(suggestion, "")) is not None)
    if rule.change is None or rule.change in STEPS:
        return bool(rule.change or rule.once or rule.rounds[0].write)
    named = named_passage(suggestion, groups)
    span = named.find(text) if named else Span(0, len(text))
    passage = Passage(
        (span or Span(0, 0)).extract(text).rstrip("\n"), language_of(name), named is None, groups, rule.table
    )
    return transform(rule.change, passage) is not None


@pytest.mark.parametrize(
    "rule",
    [rule for rule in RULES if rule.rounds and rule.rounds[0].write],
    ids=lambda rule: rule.rounds[0].write[0].name,
)
def test_what_a_piece_suggests_to_say_next_can_be_done(rule: ScriptRule) -> None:
    document = rule.rounds[0].write[0]
    said = fill(rule.rounds[-1].text, GROUPS)
    suggestions = re.findall(r"“(?!\S+”)([^“”…]+)”", said)
    name, text = fill(document.name, GROUPS), fill(document.text, GROUPS)
    assert [each for each in suggestions if not does_something(each, name, text)] == []
