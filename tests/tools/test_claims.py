"""Every claim of the ledger is decided again, and must have the verdict of the committed page."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.errors import UsageError
from bankshot.oracle.reports.json_document import document
from tools.claims import ledger, report
from tools.claims.__main__ import main

PAGE = (Path(__file__).parents[2] / "docs" / "claims.md").read_text(encoding="utf-8")
CLAIMS = ledger.claims()
SECTIONS = {part.split(":")[0]: f"### {part}" for part in re.split(r"(?m)^### ", PAGE)[1:]}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_comes_out_as_on_the_page(claim):
    decision = claim.decide()
    committed = SECTIONS[claim.id]
    assert committed.splitlines()[0] == report.heading(claim, decision), "the verdict differs; run `make claims`"
    assert committed.startswith(report.section(claim, decision)), "the figures differ; run `make claims`"
    (entry,) = json.loads(document("claims", [report.entry(claim, decision)], ok=True))["cases"]
    assert entry["figures"].keys() == decision.figures.keys()


def test_the_page_has_every_claim_and_no_other():
    assert list(SECTIONS) == [claim.id for claim in CLAIMS]


def test_every_document_has_all_its_claims():
    numbers = {document: 0 for document in ledger.DOCUMENTS}
    for claim in CLAIMS:
        _, number, _ = claim.order
        assert number in (numbers[claim.document], numbers[claim.document] + 1), claim.id  # none is left out
        numbers[claim.document] = number
    assert numbers == {"000": 12, "001": 9, "002": 7, "003": 5, "004": 6}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_is_one_sentence(claim):
    assert claim.statement.endswith((".", ").")), claim.statement
    assert claim.shapes
    assert not claim.shapes.endswith(".")


@pytest.mark.parametrize(
    ("holds", "partly", "verdict"),
    [
        (True, False, "confirmed"),
        (True, True, "confirmed"),
        (False, True, "partly"),
        (False, False, "refuted"),
        (None, True, "not decidable"),
    ],
)
def test_a_verdict_is_what_the_figures_say(holds, partly, verdict):
    decision = ledger.judge(holds, "{n:,} of them", "a clock", partly=partly, n=1000)
    assert (decision.verdict, decision.finding, decision.figures) == (verdict, "1,000 of them", {"n": 1000})
    assert decision.needs == ("a clock" if holds is None else "")


def test_a_remark_is_no_verdict():
    decided = [(CLAIMS[0], ledger.remark("{n} of them", n=2)), (CLAIMS[0], ledger.judge(True, "all"))]
    assert decided[0][1].finding == "2 of them"
    assert report.tally(decided) == "1 confirmed; 1 remark"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_verdict_names_the_command_that_decides_it(claim):
    (command,) = re.findall(r"Decided by `python -m (.*)`", SECTIONS[claim.id])
    module, *arguments = command.split()
    assert module == "tools.claims"
    assert [each.id for each in ledger.claims(id=arguments[arguments.index("--claim") + 1])] == [claim.id]


@pytest.mark.parametrize(
    ("asked", "ids"),
    [(["--document", "000"], "000."), (["--claim", "000.2"], "000.2"), (["--claim", "000.2b"], "000.2b")],
)
def test_what_is_asked_for_is_found(asked, ids):
    option, value = asked
    found = ledger.claims(**{"document" if option == "--document" else "id": value})
    assert [claim.id for claim in found] == [claim.id for claim in CLAIMS if claim.id.startswith(ids)]


@pytest.mark.parametrize("asked", [{"document": "005"}, {"id": "000.99"}, {"id": "tile"}])
def test_what_there_is_not_is_named(asked):
    with pytest.raises(UsageError, match=next(iter(asked.values()))):
        ledger.claims(**asked)


def test_the_command_shows_one_claim_and_gives_its_figures():
    shown = CliRunner().invoke(main, ["--claim", "000.4"])
    assert shown.exit_code == 0
    assert "000.4  confirmed" in shown.stdout
    assert "48 barriers in the loop against 96" in shown.stdout
    (entry,) = json.loads(CliRunner().invoke(main, ["--claim", "000.4", "--json"]).stdout)["cases"]
    assert (entry["verdict"], entry["figures"]["in_loop"], entry["figures"]["twin"]) == ("confirmed", 48, 96)
    assert entry["decided_by"] == "tools.claims.document_000.barriers"


def test_the_command_writes_the_page(tmp_path):
    done = CliRunner().invoke(main, ["--claim", "000.4", "--page", str(tmp_path / "page.md")])
    assert (done.exit_code, done.stdout) == (0, "claims: 1 confirmed\n")
    assert SECTIONS["000.4"].strip() in (tmp_path / "page.md").read_text(encoding="utf-8")
