//! Finds the viewer's bundle. It only looks: building the viewer is the work of `./dwell`, so
//! that compiling Rust never runs npm.

use std::path::Path;
use std::{env, fs, process};

const BUNDLE: &str = "../../viewer/dist/index.html";

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let bundle = Path::new(&here).join(BUNDLE);
    println!("cargo::rerun-if-changed={}", bundle.display());
    let code = if bundle.is_file() {
        format!("include_bytes!({:?})", bundle.display().to_string())
    } else {
        "compile_error!(\"viewer/dist/index.html is missing: build the viewer first with `./dwell \
         build`, or `npm --prefix viewer ci && npm --prefix viewer run build`\")"
            .to_owned()
    };
    let out = Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("viewer_bundle.rs");
    if let Err(error) = fs::write(&out, code) {
        println!("cargo::error=cannot write {}: {error}", out.display());
        process::exit(1);
    }
}
