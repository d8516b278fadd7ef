"""Builds the chaos program with the JDK under test, and its native libraries; finds our vantages.

The agent and the command are copied, so that a build during a long run does not change them.
"""

import re
import shutil
import subprocess
import time
from pathlib import Path

from benchlib import jdks, tools

SOURCE = tools.ROOT / "java/chaos"
WORK = tools.WORK / "chaos"
VANTAGES = ("snapshot", "handler", "paused")


class Built:
    """The files of runs: the agent, the command, and the folder of the native libraries."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.agent, self.command = folder / "libdwell.so", folder / "dwell"
        self.classes: dict[int, Path] = {}
        self.vantages: list[str] = []


def build(chosen: list) -> Built:
    """Builds for these JDKs, into a folder of this process alone."""
    for old in WORK.glob("built-*"):
        if time.time() - old.stat().st_mtime > 86400:
            shutil.rmtree(old, ignore_errors=True)
    WORK.mkdir(parents=True, exist_ok=True)
    folder = WORK / f"built-{time.time_ns()}"
    folder.mkdir()
    built = Built(folder)
    shutil.copy2(tools.agent(), built.agent)
    shutil.copy2(tools.command(), built.command)
    natives(chosen[0], folder)
    for jdk in chosen:
        built.classes[jdk.major] = classes(jdk, folder / f"classes-{jdk.major}")
    built.vantages = vantages(chosen[0], built)
    return built


def checked(words: list) -> None:
    """Runs a compiler; ends the program with its words if it fails."""
    out = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}\nfailed:\n{out.stdout}{out.stderr}")


def natives(jdk: jdks.Jdk, folder: Path) -> None:
    """The native libraries; the plug-in twice, as two files."""
    flags = ["cc", "-O2", "-g", "-fomit-frame-pointer", "-shared", "-fPIC", "-Wall", "-Wextra",
             "-Wno-unused-parameter", "-Werror", f"-I{jdk.home}/include",
             f"-I{jdk.home}/include/linux"]
    native = SOURCE / "native"
    parts = [native / f"{name}.c" for name in ("calls", "threads", "signals")]
    checked([*flags, "-o", folder / "libdwellchaos_jni.so", *parts, "-pthread"])
    checked([*flags, "-o", folder / "libdwellchaos_plugin.so", native / "plugin.c"])
    shutil.copy2(folder / "libdwellchaos_plugin.so", folder / "libdwellchaos_plugin2.so")


def classes(jdk: jdks.Jdk, target: Path) -> Path:
    """The classes by this JDK's own compiler, for release 8 while it knows that."""
    flags = ["-Xlint:all,-options,-serial", "-g", "-encoding", "UTF-8", "-d", str(target)]
    target.mkdir()
    sources = sorted((SOURCE / "src").rglob("*.java"))
    for release in (["--release", "8"], []):
        words = [jdk.tool("javac"), *release, *flags, *map(str, sources)]
        out = subprocess.run(words, capture_output=True, text=True)
        if out.returncode == 0:
            return target
    raise SystemExit(f"javac of {jdk.home} failed:\n{out.stdout}{out.stderr}")


def vantages(jdk: jdks.Jdk, built: Built) -> list[str]:
    """The vantages of this agent: the values of its option `walk`, or its only way."""
    found = []
    for vantage in VANTAGES:
        file = built.folder / f"probe-{vantage}.jfr"
        option = f"-agentpath:{built.agent}=start,walk={vantage},file={file}"
        out = subprocess.run([jdk.tool("java"), option, "-version"], capture_output=True, text=True)
        if out.returncode == 0 and not re.search("not recording", out.stdout + out.stderr):
            found.append(vantage)
    return found or ["default"]
