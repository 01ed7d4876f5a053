"""Python processes of our own: what they import, and from where."""

from __future__ import annotations

import os
import subprocess
import sys

from bankshot.sim.child_program import command


def test_a_child_imports_nothing_from_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    statements = "import json, sys; from bankshot import check; print(json.dumps([sys.path, sys.argv[1:]]))"
    done = subprocess.run(command(statements, "one", "two"), capture_output=True, text=True, check=True)
    path, arguments = eval(done.stdout)
    assert str(tmp_path) not in path
    assert path == [os.path.abspath(each) for each in sys.path if each]
    assert arguments == ["one", "two"]
