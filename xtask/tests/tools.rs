//! The steps by which `./test` installs missing tools, on a PATH of their own. They find an
//! existing tool, install a missing one, and report one that they cannot install.
#![allow(missing_docs)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use xtask::suite::options::Options;

/// A folder that is the whole PATH, and the home, of the steps.
struct World(PathBuf);

impl World {
    fn new() -> World {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("dwell-tools-{}-{number}", std::process::id());
        let world = World(std::env::temp_dir().join(name));
        fs::create_dir_all(world.0.join("bin")).unwrap();
        for tool in ["sed", "chmod", "mkdir"] {
            let find = ["-c", "command -v \"$0\"", tool];
            let found = Command::new("sh").args(find).output().unwrap().stdout;
            let found = String::from_utf8(found).unwrap();
            symlink(found.trim(), world.0.join("bin").join(tool)).unwrap();
        }
        world.program("id", "echo 0");
        world
    }

    fn program(&self, name: &str, script: &str) {
        program(&self.0.join("bin").join(name), script);
    }

    /// Whether the step succeeded, and its output.
    fn step(&self, step: &str) -> (bool, String) {
        let tools = xtask::repository().join("xtask/tools.sh");
        let mut bash = Command::new("/bin/bash");
        bash.args(["-euc", &format!("source '{}'; {step}", tools.display())])
            .env_clear()
            .env("PATH", self.0.join("bin"))
            .env("HOME", &self.0)
            .env("DWELL_SYSTEM_JDKS", self.0.join("jvm"));
        let output = bash.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.success(), said)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/bash\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn no_browser_is_no_browser_even_if_none_is_named() {
    let world = World::new();
    assert_eq!(world.step("find_browser"), (false, String::new()));
    world.program("google-chrome", "");
    let found = format!("{}\n", world.path("bin/google-chrome"));
    assert_eq!(world.step("find_browser"), (true, found));
    world.program("mine", "");
    let found = format!("{}\n", world.path("bin/mine"));
    assert_eq!(
        world.step("DWELL_CHROMIUM=mine; find_browser"),
        (true, found)
    );
}

#[test]
fn a_missing_browser_is_installed_once() {
    let world = World::new();
    // The first try finds old lists, as on a new machine.
    let lists = world.path("lists");
    let chromium = world.path("bin/chromium");
    world.program(
        "apt-get",
        &format!(
            "case $1 in update) echo new >'{lists}' ;; \
             install) [ -e '{lists}' ] || exit 100; \
             [ \"$*\" = 'install -y -q chromium' ] && echo '#!/bin/bash' >'{chromium}' && \
             chmod 755 '{chromium}' ;; esac"
        ),
    );
    assert_eq!(
        world.step("provide_browser"),
        (true, "installing Chromium\n".to_owned())
    );
    assert_eq!(world.step("provide_browser"), (true, String::new()));
}

#[test]
fn user_without_rights_gets_install_commands() {
    let world = World::new();
    let (good, said) = world.step("provide_browser");
    assert!(!good && said.contains("no Chromium found"), "{said}");
    // Nor may anybody but root.
    world.program("id", "echo 1000");
    world.program("apt-get", "echo installed >&2; exit 0");
    let (good, said) = world.step("provide_browser");
    assert!(!good && !said.contains("installing"), "{said}");
    // An installation that brings nothing is noticed.
    world.program("id", "echo 0");
    let (good, said) = world.step("provide_browser");
    assert!(
        !good && said.starts_with("installing Chromium\nno Chromium found"),
        "{said}"
    );
}

#[test]
fn jdks_are_found_by_their_release_or_installed() {
    let world = World::new();
    let jdk = |home: &str, version: &str| {
        program(&world.0.join(home).join("bin/javac"), "");
        let text = format!("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"{version}\"\n");
        fs::write(world.0.join(home).join("release"), text).unwrap();
    };
    assert!(!world.step("find_jdk 17").0);
    jdk(".cache/dwell-jdks/x", "17.0.15");
    jdk("jvm/y", "25");
    jdk("jvm/z", "1.8.0_452");
    for (feature, home) in [
        ("17", ".cache/dwell-jdks/x"),
        ("25", "jvm/y"),
        ("8", "jvm/z"),
    ] {
        let found = format!("{}\n", world.path(home));
        assert_eq!(world.step(&format!("find_jdk {feature}")), (true, found));
    }
    let (good, said) = world.step("provide_jdk 21");
    assert!(!good && said.starts_with("no JDK 21 found"), "{said}");
}

#[test]
fn wrong_options_are_refused_before_the_build() {
    let world = World::new();
    for words in [
        "",
        "--all",
        "--list --only wall --all",
        "--only --all",
        "--only wall --only jfr",
        "--fast",
        "--only",
        "--only ''",
        "--list x",
        "--all=1",
    ] {
        let (good, said) = world.step(&format!("check_options {words} 2>&1"));
        let plain = words.split_whitespace().map(|word| word.replace('\'', ""));
        let plain: Vec<String> = plain.collect();
        assert_eq!(good, Options::parse(&plain).is_ok(), "{words}: {said}");
        assert_eq!(said.lines().count(), usize::from(!good), "{words}: {said}");
    }
    let (_, code) = world.step("check_options --fast 2>/dev/null || echo $?");
    assert_eq!(code, "2\n");
    // The script itself prints no other line: it has built nothing.
    let test = xtask::repository().join("test");
    let mut bash = Command::new("/bin/bash");
    bash.arg(test)
        .arg("--fast")
        .stdin(std::process::Stdio::null());
    let output = bash.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(output.stdout, b"");
    assert!(said.starts_with("./test: --fast: no such option"), "{said}");
}
