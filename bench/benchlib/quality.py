"""A recording's data about its own samples: how many, failed, lost, how deep, at what settings."""

from pathlib import Path

from . import recordings, tools

# The frames with which async-profiler says that it could not walk, or not name, a stack; in JFR
# files without brackets.
BROKEN = (r"\[?(break_\w+|unknown_\w+|no_Java_frame|stale_jmethodID|jvmtiError.*|not_walkable\w*"
          r"|GC_active|deoptimization|safepoint|skipped|unexpected_state|storage_overflow"
          r"|truncated.*)\]?")
# CPU time that dwell records without a stack, because there was no sample to walk.
NO_WALK = r"(thread|recording)_ended_unsampled"


def of(path: Path) -> dict:
    """The facts that SampleQuality prints: numbers by name, and `causes`, `settings`, `self`."""
    jdk = recordings.reader()
    classes = tools.compiled(jdk, "SampleQuality", 11)
    text = recordings.output([jdk.tool("java"), "-Xmx2g", "-cp", classes, "SampleQuality",
                              str(path), BROKEN, NO_WALK])
    facts = {"causes": {}, "settings": [], "self": {}}
    for words in map(str.split, text.splitlines()):
        if words[0] == "cause":
            facts["causes"][words[1]] = int(words[2])
        elif words[0] == "self":
            facts["self"][words[1]] = int(words[2])
        elif words[0] == "setting":
            facts["settings"].append(words[1])
        else:
            facts[words[0]] = int(words[1])
    return facts
