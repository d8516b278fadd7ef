"""A copy of the tree that has the faults, and what is built of it. The tree itself stays as it is.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchlib import tools

from . import faults

WORK = tools.ROOT / "target/faults"
TREE, BUILD = WORK / "tree", WORK / "build"
SWITCH = Path(__file__).parent / "switch.rs"
# In no library but the faulty one.
MARK = b"DWELL_FAULT"
MANIFEST = """[package]
name = "deliberate"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
"""


def patched() -> dict[str, str]:
    """The files that have faults, with all of them; ends the program if a place has changed."""
    texts, wrong = {}, []
    edits = [(edit, None) for edit in faults.ALWAYS]
    edits += [(edit, fault) for fault in faults.ALL for edit in fault.edits]
    for edit, fault in edits:
        text = texts.get(edit.path)
        if text is None:
            path = tools.ROOT / edit.path
            text = path.read_text() if path.exists() else ""
        if text.count(edit.old) != 1:
            name = fault.name if fault else "the switch"
            wrong.append(f"{name}: {edit.path} has its place {text.count(edit.old)} times, not "
                         f"once:\n{edit.old}")
            continue
        new = edit.new.replace("FAULT", f"deliberate::is({fault.number})") if fault else edit.new
        texts[edit.path] = text.replace(edit.old, new)
    if wrong:
        wrong.insert(0, "the code has changed; adapt bench/faultlib/faults.py:")
        raise SystemExit("\n".join(wrong))
    return texts


def manifests(paths) -> dict[str, str]:
    """The manifests of the crates of these files, which need the switch."""
    found = {}
    for crate in sorted({Path(path).parts[1] for path in paths}):
        name = f"crates/{crate}/Cargo.toml"
        text = (tools.ROOT / name).read_text()
        found[name] = text.replace("[dependencies]\n",
                                   '[dependencies]\ndeliberate = { path = "../deliberate" }\n', 1)
        if "deliberate" not in found[name]:
            found[name] += '\n[dependencies]\ndeliberate = { path = "../deliberate" }\n'
    return found


def copy() -> None:
    """Makes the copy, or updates it; unchanged files keep their time."""
    texts = patched()
    texts |= manifests(texts)
    texts["crates/deliberate/Cargo.toml"] = MANIFEST
    texts["crates/deliberate/src/lib.rs"] = SWITCH.read_text()
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=tools.ROOT, capture_output=True, check=True).stdout
    names = {os.fsdecode(name) for name in listed.split(b"\0") if name}
    names = {name for name in names if (tools.ROOT / name).is_file()}
    names |= {"viewer/dist/index.html"} | set(texts)
    for name in sorted(names - {"Cargo.lock"}):
        new = texts[name].encode() if name in texts else (tools.ROOT / name).read_bytes()
        path = TREE / name
        if not path.exists() or path.read_bytes() != new:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(new)
            if name not in texts:
                shutil.copymode(tools.ROOT / name, path)
    if not (TREE / "Cargo.lock").exists():
        shutil.copy(tools.ROOT / "Cargo.lock", TREE)
    for path in [path for path in TREE.rglob("*") if path.is_file()]:
        if str(path.relative_to(TREE)) not in names | {"Cargo.lock"}:
            path.unlink()


def run(what: str, *words, **more) -> str:
    """Runs a step of the build and prints its time. Returns its output."""
    began = time.monotonic()
    out = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **more)
    if out.returncode != 0:
        raise SystemExit(f"{what} failed: {' '.join(map(str, words))}")
    print(f"  {what:<34} {time.monotonic() - began:6.0f} s", file=sys.stderr)
    return out.stdout


def built_tests(messages: str) -> dict[tuple, tuple]:
    """The test programs among cargo's messages, by crate and target: the program, its folder."""
    found = {}
    for line in messages.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"]:
            folder = Path(message["manifest_path"]).parent
            kinds = set(message["target"]["kind"])
            target = message["target"]["name"] if kinds & {"test", "bin"} else "lib"
            found[folder.name, target] = (message["executable"], folder)
    return found


class Built:
    """The faulty agent, and the programs of tests: those with a JVM are of the tree itself."""

    def __init__(self, chosen: list):
        run("the agent and what tests need", tools.ROOT / "dwell", "build")
        copy()
        cargo = {"cwd": TREE, "env": {**os.environ, "CARGO_TARGET_DIR": str(BUILD)}}
        run("an agent with all faults", "cargo", "build", "--quiet", "--offline", "--profile",
            "cli", "-p", "dwell-agent", "--features", "experiments", **cargo)
        self.agent = BUILD / "cli/libdwell.so"
        self.tests = {}
        own = {(test.crate, test.target) for test in (fault.test for fault in chosen)}
        crates = sorted({crate for crate, _ in own} - {"e2e"})
        said = ["--no-run", "--quiet", "--message-format=json-render-diagnostics"]
        if crates:
            packages = [word for crate in crates for word in ("-p", f"dwell-{crate}")]
            targets = {target for crate, target in own if crate != "e2e"}
            targets = ["--lib"] * ("lib" in targets) + [
                word for target in sorted(targets - {"lib"}) for word in ("--test", target)]
            self.tests |= built_tests(run("tests of crates with all faults", "cargo", "test",
                                          "--offline", *packages, *targets, *said, **cargo))
        targets = sorted({target for crate, target in own if crate == "e2e"})
        if targets:
            words = [word for target in targets for word in ("--test", target)]
            self.tests |= built_tests(run("tests with a JVM", "cargo", "test", "--locked", "-p",
                                          "dwell-e2e", *words, *said, cwd=tools.ROOT))
        if MARK not in self.agent.read_bytes():
            raise SystemExit(f"{self.agent} has no faults")


def shipped() -> str:
    """Proves that nothing of the faults is in the tree or in the library that is given away."""
    found = subprocess.run(["git", "grep", "-l", "-e", "deliberate::", "-e", MARK.decode(), "--",
                            ".", ":!bench"], cwd=tools.ROOT, capture_output=True, text=True)
    code = [name for name in found.stdout.split() if not name.endswith(".md")]
    if found.returncode > 1 or code:
        raise SystemExit(f"faults are outside of bench/: {found.stderr} {' '.join(code)}")
    library = Path(tools.agent())
    if MARK in library.read_bytes():
        raise SystemExit(f"{library} has deliberate faults: it must not be given away")
    return str(library)
