//! Finds the files inside the command: the agent's library, Mono's module and the demo's jar.
//!
//! It does not build them: the `dwell` and `test` scripts do that, in the right order. An
//! environment variable can name each file. The default is the place where those scripts put it.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let workspace = manifest.join("../..");
    // OUT_DIR is TARGET/PROFILE/build/NAME/out, one level deeper with --target.
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut targets: Vec<PathBuf> = out
        .ancestors()
        .skip(4)
        .take(2)
        .map(Path::to_owned)
        .collect();
    targets.push(workspace.join("target"));
    provide(
        "DWELL_AGENT_SO",
        &targets
            .iter()
            .map(|target| target.join("release/libdwell.so"))
            .collect::<Vec<_>>(),
        "the agent's library; build it first: cargo build --release -p dwell-agent",
    );
    provide(
        "DWELL_MONO_SO",
        &targets
            .iter()
            .map(|target| target.join("release/libmono_profiler_dwell.so"))
            .collect::<Vec<_>>(),
        "Mono's module; build it first: cargo build --release -p dwell-mono",
    );
    provide(
        "DWELL_DEMO_JAR",
        &[workspace.join("target/java/dwell-demo.jar")],
        "the demo's jar; build it first: java/build.sh",
    );
}

/// Passes `NAME_PATH` to the crate, or ends the build with the remedy.
fn provide(name: &str, places: &[PathBuf], what: &str) {
    println!("cargo::rerun-if-env-changed={name}");
    let named = env::var_os(name).map(PathBuf::from);
    let candidates = named.as_ref().map_or(places, std::slice::from_ref);
    match candidates
        .iter()
        .find_map(|place| place.canonicalize().ok())
    {
        Some(path) => {
            println!("cargo::rerun-if-changed={}", path.display());
            println!("cargo::rustc-env={name}_PATH={}", path.display());
        }
        None => {
            let tried: Vec<String> = candidates.iter().map(|p| p.display().to_string()).collect();
            println!(
                "cargo::error=not found in {}: {what} (or set {name})",
                tried.join(", ")
            );
        }
    }
}
