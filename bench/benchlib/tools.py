"""The programs under test and the other profilers: their places, and how they are loaded.

Nothing is built here but the Java programs of the benchmarks; artifacts come by their Maven
coordinates into target/bench/.
"""

import os
import subprocess
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target/bench"
ASYNC_PROFILER = "tools.profiler:async-profiler:4.6"
FINAGLE = ("com.twitter", "finagle-http_2.13", "24.2.0")
SCALA = ("org.scala-lang", "scala3-compiler_3", "3.7.4")
PROGRAMS = ROOT / "target/java"
# Most frames of a stack: our default.
DEPTH = 8192


def cargo_target() -> Path:
    """Where cargo builds to."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")


def needed(path: Path, variable: str) -> str:
    """The path, or that in an environment variable; ends the program if nothing is there."""
    path = Path(os.environ.get(variable) or path)
    if not path.exists():
        raise SystemExit(f"{path} is missing; build it with ./dwell build (or set {variable})")
    return str(path.resolve())


def agent() -> str:
    """Our agent's library."""
    return needed(cargo_target() / "release/libdwell.so", "DWELL_AGENT_SO")


def command() -> str:
    """The `dwell` command."""
    return needed(cargo_target() / "cli/dwell", "DWELL_BIN")


def java_program(name: str) -> str:
    """A jar of the test programs or of the checker."""
    return needed(PROGRAMS / name, "DWELL_" + name.upper().replace("-", "_").replace(".", "_"))


def maven(*words: str) -> None:
    """Runs Maven without its chatter; ends the program with its output if it fails."""
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        out = subprocess.run(["mvn", "-q", "-B", *words], cwd=WORK, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise SystemExit("mvn is missing; install Maven (on Debian: apt-get install maven)")
    if out.returncode != 0:
        raise SystemExit(f"mvn {' '.join(words)} failed:\n{out.stdout}")


def async_profiler() -> str:
    """async-profiler's library, downloaded once."""
    return library_of(ASYNC_PROFILER, "linux-x64/libasyncProfiler.so")


def library_of(artifact: str, member: str) -> str:
    """A library that a jar of Maven Central holds."""
    name, version = artifact.split(":")[1:]
    library = WORK / name / Path(member).name
    if not library.exists():
        folder = library.parent
        maven("dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
        with zipfile.ZipFile(folder / f"{name}-{version}.jar") as archive:
            partial = library.with_suffix(".new")
            partial.write_bytes(archive.read(member))
            partial.rename(library)
    return str(library)


POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.dwell.bench</groupId><artifactId>{}</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
  </dependency></dependencies>
</project>
"""


def scala_compiler() -> str:
    """The class path of the Scala compiler, downloaded once."""
    return class_path("scala", SCALA)


def finagle() -> str:
    """The class path of Finagle's HTTP, downloaded once."""
    return class_path("finagle", FINAGLE)


def class_path(name: str, artifact: tuple) -> str:
    """The class path of an artifact with all it needs, downloaded once."""
    folder = WORK / f"{name}-{artifact[2]}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        pom = folder / "pom.xml"
        pom.write_text(POM.format(name, *artifact))
        maven("-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}")
        (folder / "complete").touch()
    return ":".join(str(jar) for jar in sorted(folder.glob("*.jar")))


def fixed_work(jdk) -> str:
    """The class path of FixedWork, compiled for the oldest JVM in question."""
    return compiled(jdk, "FixedWork", 8)


def compiled(jdk, name: str, release: int, libraries: str = "") -> str:
    """The class path, without libraries, of a program in bench/java, compiled for a release."""
    source, classes = ROOT / f"bench/java/{name}.java", WORK / "classes"
    target = classes / f"{name}.class"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        # Warnings about the libraries' own class files are theirs.
        subprocess.run([jdk.tool("javac"), "-Xlint:all,-options,-classfile,-processing",
                        "--release", str(release), "-cp", libraries or str(classes),
                        "-sourcepath", str(source.parent), "-d", str(classes), str(source)],
                       check=True)
    return str(classes)


def dwell_option(path, interval: str, extra: str = "") -> str:
    """The JVM's option that records with our agent from the start."""
    return f"-agentpath:{agent()}=start,cpu={interval},file={path}{extra}"


def async_option(path, interval: str, form: str, event: str = "cpu") -> str:
    """The same for async-profiler, its engine and its walker being the default ones.

    Its limit of 2048 Java frames is raised to ours, so that depth is not what is compared.
    """
    return (f"-agentpath:{async_profiler()}=start,event={event},interval={interval},"
            f"jstackdepth={DEPTH},{form},file={path}")


def jfr_options(path, interval: str, event: str) -> list:
    """The options that record with the JVM's own recorder: only one sampling event."""
    settings = ["jdk.ActiveSetting#enabled=true", f"{event}#enabled=true"]
    if event == "jdk.CPUTimeSample":
        settings += [f"{event}#throttle={interval}", "jdk.CPUTimeSamplesLost#enabled=true"]
    else:
        settings.append(f"{event}#period={interval.replace('ms', ' ms')}")
    added = ",".join("+" + setting for setting in settings)
    # 2048 is the deepest it takes.
    return [f"-XX:StartFlightRecording:settings=none,filename={path},{added}",
            "-XX:FlightRecorderOptions:stackdepth=2048"]


def load(jdk, pid: int, library: str, arguments: str) -> list:
    """The JDK's own command that loads an agent into a running JVM."""
    return [jdk.tool("jcmd"), str(pid), "JVMTI.agent_load", library, f'"{arguments}"']
