"""Finds JDKs as the build does: JAVA_HOME, PATH, DWELL_JDKS/*, /usr/lib/jvm/*. Installs nothing."""

import os
import re
import shutil
import subprocess
from pathlib import Path


class Jdk:
    """One JDK: its home and its major version."""

    def __init__(self, home: Path, major: int):
        self.home, self.major = home, major
        self._full = None

    def tool(self, name: str) -> str:
        """The path of one of its programs."""
        return str(self.home / "bin" / name)

    @property
    def full(self) -> str:
        """The runtime's version in words, for the head of a table."""
        if self._full is None:
            out = subprocess.run([self.tool("java"), "-version"], capture_output=True, text=True)
            found = re.search(r"Runtime Environment (.*)", out.stderr)
            self._full = found.group(1) if found else f"JDK {self.major}"
        return self._full

    def accepts(self, *flags: str) -> bool:
        """Whether this JVM starts with these flags."""
        words = [self.tool("java"), *flags, "-version"]
        return subprocess.run(words, capture_output=True).returncode == 0


def major_of(home: Path) -> int | None:
    """The major version, from the release file or, without one, from the JVM."""
    text = ""
    try:
        text = (home / "release").read_text()
    except OSError:
        pass
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.M)
    if not found:
        out = subprocess.run([home / "bin/java", "-version"], capture_output=True, text=True)
        found = re.search(r'version "(?:1\.)?(\d+)', out.stderr)
    return int(found.group(1)) if found else None


def all_jdks() -> dict[int, Jdk]:
    """The first JDK of each major version."""
    path_java = shutil.which("javac")
    places = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    places += [Path(path_java).resolve().parent.parent] if path_java else []
    own = Path(os.environ.get("DWELL_JDKS") or Path.home() / ".cache/dwell-jdks")
    for folder in (own, Path("/usr/lib/jvm")):
        places += sorted(folder.glob("*")) if folder.is_dir() else []
    found = {}
    for home in places:
        home = home.resolve()
        if (home / "bin/javac").exists() and (major := major_of(home)):
            found.setdefault(major, Jdk(home, major))
    return dict(sorted(found.items()))


def chosen(text: str) -> list[Jdk]:
    """The JDKs named by `17,25` or `all`; ends the program if one is missing."""
    found = all_jdks()
    if text == "all":
        return list(found.values())
    missing = [v for v in text.split(",") if not v.isdigit() or int(v) not in found]
    if missing:
        raise SystemExit(f"--jdk {text}: no JDK {', '.join(missing)} found (there are "
                         f"{' '.join(map(str, found))}); set DWELL_JDKS to a folder of JDKs")
    return [found[int(v)] for v in text.split(",")]
