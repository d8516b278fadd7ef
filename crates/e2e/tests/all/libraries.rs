//! Recordings say which jar or module a class is from, on each JDK and with each collector.

use dwell_e2e::{Jdk, Place, View, agent, both, cpu_time, jdks, record_outside, turn};
use dwell_profile::{GroupBy, Profile};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// One class in each jar; the main class is in a folder, and its heap is never still.
const SOURCES: [(&str, &str); 3] = [
    (
        "one/acme/one/One.java",
        "package acme.one; public class One { public static double sink;
         public static void spin() { for (int i = 0; i < 200_000; i++) sink += Math.sin(i); } }",
    ),
    (
        "two/acme/two/Two.java",
        "package acme.two; public class Two { public static double sink;
         public static void spin() { for (int i = 0; i < 200_000; i++) sink += Math.cos(i); }
         public static void text() {
             java.util.HashMap<String, String> map = new java.util.HashMap<>();
             for (int i = 0; i < 20_000; i++) map.put(\"k\" + i, \"v\" + i);
             sink += map.size(); } }",
    ),
    (
        "main/Main.java",
        "public class Main { public static void main(String[] arguments) {
             java.lang.management.ThreadMXBean threads =
                 java.lang.management.ManagementFactory.getThreadMXBean();
             Runnable text = () -> acme.two.Two.text();
             long most = arguments.length == 0 ? 1_000_000_000L : Long.MAX_VALUE;
             text.run();
             System.out.println(\"ready\");
             while (threads.getCurrentThreadCpuTime() < most) {
                 acme.one.One.spin(); acme.two.Two.spin(); text.run(); } } }",
    ),
];

const CLASS_PATH: &str = "one-1.0.jar:two 2.jar:main/classes";

fn run(command: &mut Command) {
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}

/// Compiles the program with this JDK into two jars and a folder.
fn compile(jdk: &Jdk, place: &Place) {
    for (path, text) in SOURCES {
        let file = place.path(path);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, text).expect("a source");
    }
    let javac = |folder: &str, class_path: &str, source: &str| {
        let classes = place.path(folder).join("classes");
        std::fs::create_dir_all(&classes).expect("a folder");
        let mut command = Command::new(jdk.tool("javac"));
        command.arg("-d").arg(&classes).args(["-cp", class_path]);
        run(command.arg(source).current_dir(&place.dir));
    };
    let jar = |name: &str, folder: &str| {
        let mut command = Command::new(jdk.tool("jar"));
        command.args(["cf", name, "-C", folder, "."]);
        run(command.current_dir(&place.dir));
    };
    javac("one", ".", SOURCES[0].0);
    javac("two", ".", SOURCES[1].0);
    jar("one-1.0.jar", "one/classes");
    jar("two 2.jar", "two/classes");
    javac("main", CLASS_PATH, SOURCES[2].0);
}

fn record(jdk: &Jdk, place: &Place, options: &[&str]) -> View {
    let file = place.path("libraries.jfr");
    let load = format!(
        "-agentpath:{}=start,cpu=2ms,file={}",
        agent().display(),
        file.display()
    );
    let mut command = Command::new(jdk.tool("java"));
    command.env_remove("JAVA_TOOL_OPTIONS").arg(load);
    command.args(options).args(["-cp", CLASS_PATH, "Main"]);
    run(command.current_dir(&place.dir));
    View::read(&file)
}

/// Nothing is attributed to a wrong place, and what is certain to be seen has its own.
#[track_caller]
fn check(view: &View, jdk: &Jdk) {
    let mut known = [0; 4];
    for method in &view.recording.methods {
        let (class, location) = (&*method.class, Path::new(&*method.location));
        let jar = match class {
            "acme.one.One" => ("one-1.0.jar", 0),
            "acme.two.Two" => ("two%202.jar", 1),
            "Main" => ("classes", 2),
            _ => {
                let is_base = class.starts_with("java.util.");
                if is_base && jdk.feature >= 9 && !method.module.is_empty() {
                    assert_eq!((&*method.module, &*method.location), ("java.base", ""));
                    known[3] += 1;
                }
                continue;
            }
        };
        if !method.location.is_empty() {
            assert!(
                method.location.starts_with("file:/"),
                "{class} {location:?}"
            );
            assert_eq!(location.file_name(), Some(jar.0.as_ref()), "{class}");
            assert_eq!(&*method.module, "", "{class}");
            known[jar.1] += 1;
        }
    }
    let wanted = if jdk.feature >= 9 { 4 } else { 3 };
    let is_told = known.iter().take(wanted).all(|known| *known > 0);
    assert!(is_told, "{known:?} of {:?}", view.recording.methods);
    let profile = Profile::from_recording(view.recording.clone());
    let rows = profile.top(GroupBy::Library, |_| true);
    let sum = |name: &str| {
        let row = rows.iter().find(|row| row.name.ends_with(name));
        row.map_or(0, |row| row.total.sum)
    };
    let (one, two) = (sum("one-1.0.jar"), sum("two 2.jar"));
    assert!(
        one > 0 && two > 0 && sum("/main/classes/") >= one.max(two),
        "{rows:?}"
    );
    assert_eq!(sum("acme.one") + sum("acme.two"), 0, "{rows:?}");
}

#[test]
fn classes_have_their_jars_on_every_jdk() {
    let all: Vec<&Jdk> = jdks().iter().collect();
    dwell_e2e::each(&turn(&all), |jdk| {
        let place = Place::new("libraries");
        compile(jdk, &place);
        check(&record(jdk, &place, &["-Xmx64m"]), jdk);
    });
}

/// A program that goes on until this is dropped.
struct Endless(Child);

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn classes_have_their_jars_from_outside() {
    dwell_e2e::each(&turn(&both()), |jdk| {
        let place = Place::new("libraries-outside");
        compile(jdk, &place);
        let mut command = Command::new(jdk.tool("java"));
        command.env_remove("JAVA_TOOL_OPTIONS").args(["-Xmx64m"]);
        command.args(["-cp", CLASS_PATH, "Main", "endless"]);
        command.current_dir(&place.dir).stdout(Stdio::piped());
        let mut program = Endless(command.spawn().expect("java starts"));
        let mut line = String::new();
        let output = program.0.stdout.take().expect("a pipe");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("it says something");
        assert_eq!(line.trim(), "ready");
        let (pid, file) = (program.0.id(), place.path("outside.jfr"));
        let used = || cpu_time(pid).total_ns();
        let until = used() + 1_000_000_000;
        let [cpu, step] = [2, 20].map(Duration::from_millis);
        let recorded = record_outside(pid, &file, cpu, step, || used() < until);
        match recorded {
            Some(_) => {
                let view = View::read(&file);
                check(&view, jdk);
                // The same recording has the use of the machine's processors.
                assert!(view.recording.counts.contains_key("dwell.Machine"));
            }
            None => println!("perf events are not permitted here"),
        }
    });
}

#[test]
fn jars_are_read_with_every_collector_and_reference_form() {
    let all: Vec<&Jdk> = jdks().iter().collect();
    let of = |feature| all.iter().find(|jdk| jdk.feature == feature);
    let jdk = of(25).expect("JDK 25");
    let place = Place::new("libraries-collectors");
    compile(jdk, &place);
    for options in turn(&[
        &["-XX:+UseSerialGC", "-Xmx32m"][..],
        &["-XX:+UseParallelGC", "-Xmx32m"],
        &["-XX:+UseG1GC", "-Xmx32m", "-XX:-UseCompressedOops"],
        &["-XX:+UseG1GC", "-Xmx32m", "-XX:+UseCompactObjectHeaders"],
        &["-XX:+UseZGC", "-Xmx128m"],
        &["-XX:+UseShenandoahGC", "-Xmx64m"],
    ]) {
        println!("{options:?}");
        check(&record(jdk, &place, options), jdk);
    }
}
