"""Draws what a run is like from a seed and the run's number. Pure but for questions to JVMs."""

import random

FORMS = ("calm", "storm", "jfr", "storm", "exit", "disk", "calm", "kill", "async", "storm", "halt",
         "memory", "heap")
COLLECTORS = ("Serial", "G1", "Parallel", "Z", "Shenandoah")
INTERVALS = ("100us", "200us", "500us", "1ms")
# Recorded in addition to CPU time in two runs of three, as the agent's options: none or all.
EVENTS = ("alloc=64k", "live", "lock=100us")
LAUNCHES = ("VFORK", "POSIX_SPAWN", "FORK")
# Flags that make the JVM do more often what is hard for us.
EXTRAS = ([], ["-XX:TieredStopAtLevel=1"], ["-XX:ReservedCodeCacheSize=12m"], [],
          ["-XX:-UseCompressedOops"], ["-XX:-TieredCompilation"], ["-XX:+UseStringDeduplication"],
          ["-Xss400k"])
# With little memory: without parts with high demand, and without parts whose failure may be
# fatal.
LEAN = "loaders,deopt,exceptions,alloc,jni,libraries,overflow,handles,faults,contention"
# With a full heap: none that runs code of the JDK which cannot stand that.
FULL = "full,exceptions,jni,libraries,overflow,mallocs,ends,stacks,faults,deep,timers"

# Room in bytes. On a disk, it is enough for a second or two. Of address space, the program itself
# needs about 700 MiB, and the agent 320 more, which grows during the run.
ROOM = {"disk": (128 << 10, 1 << 20),
        "memory": (1060 << 20, 1200 << 20, 1400 << 20, 1800 << 20)}


class Plan:
    """One run: the JVM, its flags, what the program does, what is done to it from outside."""

    def __init__(self, number: int, seed: str):
        self.number, self.seed = number, seed
        self.jdk = None
        self.vantage = self.form = self.collector = self.interval = self.engine = ""
        self.flags: list[str] = []
        self.words: list[str] = []
        # Events in addition to CPU time, as the agent's options.
        self.events: list[str] = []
        self.seconds = self.room = 0
        # Whether the agent is there from the start or comes by the command.
        self.attached = False

    def told(self) -> dict:
        """As it is stored and shown."""
        return {"number": self.number, "seed": self.seed, "jdk": self.jdk.major,
                "vantage": self.vantage, "form": self.form, "collector": self.collector,
                "interval": self.interval, "engine": self.engine, "flags": self.flags,
                "words": self.words, "seconds": self.seconds, "attached": self.attached,
                "room": self.room, "events": self.events}


class Planner:
    """Cycles through JDKs and vantages, and through shuffled decks of the other choices."""

    def __init__(self, options, chosen: list, vantages: list[str]):
        self.options, self.pairs = options, [(j, v) for v in vantages for j in chosen]
        self.accepted: dict[tuple, bool] = {}

    def plan(self, number: int) -> Plan:
        """The run of this number, always the same for the same options."""
        plan = Plan(number, f"{self.options.seed}-{number}")
        draw = random.Random(plan.seed)
        plan.jdk, plan.vantage = self.pairs[number % len(self.pairs)]
        turn = number // len(self.pairs)
        pair = number % len(self.pairs)
        forms = self.options.forms
        # Each pair begins elsewhere, so that few runs already show many forms.
        plan.form = forms[(turn + 5 * pair) % len(forms)]
        plan.seconds = self.options.seconds
        plan.interval = self.options.interval or draw.choice(INTERVALS)
        drawn = draw.choice(("auto", "auto", "timer", "kernel"))
        plan.engine = self.options.engine or drawn
        if plan.engine == "kernel" and plan.vantage not in ("default", "snapshot"):
            plan.engine = "auto"
        collectors = [c for c in self.options.collectors if self.takes(plan.jdk, collector(c))]
        plan.collector = draw.choice(collectors)
        plan.room = draw.choice(ROOM.get(plan.form, (0,)))
        plan.attached = plan.form == "storm" and draw.random() < 0.5
        # JDK 8 has no sampler of allocations.
        known = EVENTS if plan.jdk.major >= 11 else EVENTS[2:]
        plan.events = list(known) if (turn + pair) % 3 else []
        self.flags(plan, draw)
        self.words(plan, draw)
        return plan

    def takes(self, jdk, *flags: str) -> bool:
        """Whether this JVM starts with these flags; asked once."""
        key = (jdk.major, *flags)
        if key not in self.accepted:
            self.accepted[key] = jdk.accepts(*flags)
        return self.accepted[key]

    def flags(self, plan: Plan, draw: random.Random) -> None:
        """Flags of the JVM."""
        heap = 160 if plan.collector in ("Z", "Shenandoah") else 96
        extra = draw.choice(EXTRAS)
        launch = draw.choice(LAUNCHES)
        # JDKs before 12 do not know the third way on Linux.
        if launch == "POSIX_SPAWN" and plan.jdk.major < 12:
            launch = "VFORK"
        plan.flags = [f"-Xmx{heap}m", "-XX:MaxDirectMemorySize=48m", collector(plan.collector),
                      f"-Djdk.lang.Process.launchMechanism={launch}"]
        if plan.collector == "Parallel":
            plan.flags.append("-XX:-UseGCOverheadLimit")
        if plan.form == "memory":
            # ZGC and Shenandoah want more address space than the limit; Serial wants least.
            plan.collector = "Serial"
            plan.flags[2] = collector("Serial")
            plan.flags += ["-XX:ReservedCodeCacheSize=64m", "-XX:CompressedClassSpaceSize=48m"]
        elif extra and self.takes(plan.jdk, collector(plan.collector), *extra):
            plan.flags += extra
        if plan.jdk.major >= 17 and self.takes(plan.jdk, "--enable-native-access=ALL-UNNAMED"):
            plan.flags.append("--enable-native-access=ALL-UNNAMED")
        if plan.jdk.major >= 21:
            plan.flags.append("-XX:+EnableDynamicAgentLoading")

    def words(self, plan: Plan, draw: random.Random) -> None:
        """Arguments of the program."""
        plan.words = [f"seconds={plan.seconds}", f"seed={draw.randrange(1 << 40)}"]
        left_out = []
        if plan.attached and plan.jdk.major >= 21:
            # The JVM itself crashes if an agent comes while a native thread attaches (limits.md).
            left_out += ["attaches", "locals"]
        if plan.jdk.major == 8:
            # The JVM itself crashes in its collectors after faults in mapped memory
            # (bench/history/chaos.json).
            left_out.append("mapped")
        if left_out:
            plan.words.append(f"without={','.join(left_out)}")
        if self.options.antagonists:
            plan.words.append(f"only={self.options.antagonists}")
        elif plan.form == "memory":
            plan.words.append(f"only={LEAN}")
        elif plan.form == "heap":
            plan.words.append(f"only={FULL}")
        if plan.form in ("exit", "halt"):
            plan.words.append(f"leave={plan.form}")
        if plan.form == "async":
            plan.words.append("prof=0")


def collector(name: str) -> str:
    """The flag for a collector."""
    return f"-XX:+Use{name}GC"
