//! The crates and modules that are linked into the products, with their licences.
//!
//! `cargo tree` resolves features as a build does, so it says which crates are linked. Crates that
//! only run during the build are not.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const PRODUCTS: [&str; 3] = ["dwell-cli", "dwell-agent", "dwell-mono"];
/// The beginnings of the names of files with licences, in capitals.
const LICENCE_FILES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

/// A crate, or a module of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Component {
    /// Its package URL, which identifies it.
    pub purl: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence, as an expression of SPDX.
    pub licence: String,
    /// Where its source is; empty if it does not say so.
    pub repository: String,
    /// SHA-256 of the package in the registry; empty if it is not known.
    pub sha256: String,
    /// Whether it is a part of this repository.
    pub is_own: bool,
    /// The texts of its licences.
    pub texts: Vec<String>,
    /// The package URLs of the linked components that it uses.
    pub uses: Vec<String>,
}

/// All components that are linked for a target, sorted.
///
/// # Errors
/// Cargo or a file of the viewer cannot be read.
pub fn linked(root: &Path, target: &str) -> Result<Vec<Component>> {
    let mut tree = vec!["tree", "--locked", "--target", target, "--prefix", "none"];
    tree.extend(["--edges", "normal,no-proc-macro", "--format", "{p}"]);
    tree.extend(PRODUCTS.iter().flat_map(|product| ["--package", product]));
    let tree = cargo(root, &tree)?;
    let metadata = [
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        target,
    ];
    let metadata = serde_json::from_str(&cargo(root, &metadata)?)?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))?;
    let mut all = crates(&tree, &metadata, &lock)?;
    let lock = std::fs::read_to_string(root.join("viewer/package-lock.json"))?;
    all.extend(modules(
        &serde_json::from_str(&lock)?,
        &root.join("viewer"),
    )?);
    all.sort();
    Ok(all)
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("cargo {}: {}", arguments[0], error.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The crates in the output of `cargo tree`.
fn crates(tree: &str, metadata: &Value, lock: &str) -> Result<Vec<Component>> {
    let linked: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    let sums = checksums(lock);
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut by_id = BTreeMap::new();
    for package in packages {
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        if !linked.contains(&(name.as_str(), version.as_str())) {
            continue;
        }
        let manifest = text("manifest_path");
        let folder = Path::new(&manifest)
            .parent()
            .context("a crate without a folder")?;
        let is_own = package["source"].is_null();
        let component = Component {
            purl: format!("pkg:cargo/{name}@{version}"),
            // An older way to write "or".
            licence: text("license").replace('/', " OR "),
            repository: text("repository"),
            sha256: sums
                .get(&(name.as_str(), version.as_str()))
                .copied()
                .unwrap_or_default()
                .into(),
            is_own,
            texts: if is_own { Vec::new() } else { texts(folder) },
            name,
            version,
            uses: Vec::new(),
        };
        by_id.insert(text("id"), component);
    }
    if by_id.len() != linked.len() {
        bail!(
            "cargo tree has {} crates, cargo metadata {}",
            linked.len(),
            by_id.len()
        );
    }
    connect(&mut by_id, metadata)?;
    Ok(by_id.into_values().collect())
}

/// Fills in the components that each one uses, by the ids of cargo.
fn connect(by_id: &mut BTreeMap<String, Component>, metadata: &Value) -> Result<()> {
    let purls: BTreeMap<String, String> = by_id
        .iter()
        .map(|(id, component)| (id.clone(), component.purl.clone()))
        .collect();
    for node in metadata["resolve"]["nodes"]
        .as_array()
        .context("no nodes")?
    {
        let id = node["id"].as_str().unwrap_or_default();
        let Some(component) = by_id.get_mut(id) else {
            continue;
        };
        for dep in node["deps"].as_array().into_iter().flatten() {
            let kinds = dep["dep_kinds"].as_array();
            let is_normal =
                kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()));
            if let Some(purl) = purls.get(dep["pkg"].as_str().unwrap_or_default())
                && is_normal
            {
                component.uses.push(purl.clone());
            }
        }
        component.uses.sort();
        component.uses.dedup();
    }
    Ok(())
}

/// The checksums in `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let mut sums = BTreeMap::new();
    for block in lock.split("[[package]]") {
        let find = |key: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(key))?;
            line.strip_prefix(" = \"")?.strip_suffix('"')
        };
        if let (Some(name), Some(version), Some(sum)) =
            (find("name"), find("version"), find("checksum"))
        {
            sums.insert((name, version), sum);
        }
    }
    sums
}

/// The texts of all files with licences in a folder.
fn texts(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            let name = name.to_uppercase();
            LICENCE_FILES.iter().any(|start| name.starts_with(start))
        })
        .collect();
    names.sort();
    names
        .iter()
        .filter_map(|name| std::fs::read_to_string(folder.join(name)).ok())
        .map(|text| text.replace("\r\n", "\n").trim_end().to_owned())
        .collect()
}

/// The modules that the bundler puts into the page: the viewer's dependencies, and theirs.
fn modules(lock: &Value, viewer: &Path) -> Result<Vec<Component>> {
    let names = |package: &Value| -> Vec<String> {
        let dependencies = package["dependencies"].as_object();
        dependencies
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    };
    let packages = &lock["packages"];
    let purl = |name: &str| {
        let version = packages[format!("node_modules/{name}")]["version"].as_str();
        format!(
            "pkg:npm/{}@{}",
            name.replace('@', "%40"),
            version.unwrap_or_default()
        )
    };
    let mut waiting = names(&packages[""]);
    let mut found = BTreeMap::new();
    while let Some(name) = waiting.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let folder = format!("node_modules/{name}");
        let package = &packages[&folder];
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        if text("version").is_empty() {
            bail!("viewer/package-lock.json has no {folder}");
        }
        let uses = names(package);
        waiting.extend(uses.iter().cloned());
        let component = Component {
            purl: purl(&name),
            version: text("version"),
            licence: text("license"),
            texts: texts(&viewer.join(&folder)),
            uses: uses.iter().map(|name| purl(name)).collect(),
            name: name.clone(),
            ..Component::default()
        };
        found.insert(name, component);
    }
    Ok(found.into_values().collect())
}

/// The notices of all components that are others' work. Each text is there once.
#[must_use]
pub fn notices(components: &[Component]) -> String {
    let mut out = include_str!("notices.txt").to_owned();
    let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for component in components.iter().filter(|component| !component.is_own) {
        let named = format!("{} {}", component.name, component.version);
        let _ = write!(out, "- {named}: {}", component.licence);
        if !component.repository.is_empty() {
            let _ = write!(out, ", {}", component.repository);
        }
        out.push('\n');
        for text in &component.texts {
            let users = by_text.entry(text).or_default();
            if users.last() != Some(&named) {
                users.push(named.clone());
            }
        }
    }
    let mut texts: Vec<_> = by_text.into_iter().collect();
    texts.sort_by(|a, b| a.1.cmp(&b.1).then(a.0.cmp(b.0)));
    for (text, users) in texts {
        let line = "-".repeat(80);
        let _ = write!(out, "\n{line}\n{}\n{line}\n{text}\n", users.join(", "));
    }
    out
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// Two crates, of which one is our own and uses the other one.
    pub fn two() -> Vec<Component> {
        let tree = "dwell-cli v0.1.0 (/somewhere)\nsmall v1.2.3\nsmall v1.2.3 (*)\n";
        let package = |name: &str, version: &str, source: Value| {
            json!({"id": name, "name": name, "version": version, "source": source,
                "license": "MIT/Apache-2.0", "repository": "https://example.org",
                "manifest_path": "/nowhere/Cargo.toml"})
        };
        let dep = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [
                package("dwell-cli", "0.1.0", Value::Null),
                package("small", "1.2.3", json!("registry")),
                package("small", "0.9.0", json!("registry")),
                package("only-tests", "1.0.0", json!("registry")),
            ],
            "resolve": {"nodes": [
                {"id": "dwell-cli", "deps": [
                    dep("small", Value::Null), dep("only-tests", json!("dev"))]},
            ]},
        });
        // Ids differ in reality.
        let mut metadata = metadata;
        metadata["packages"][2]["id"] = json!("older");
        let lock = "[[package]]\nname = \"small\"\nversion = \"1.2.3\"\nchecksum = \"abcd\"\n";
        crates(tree, &metadata, lock).unwrap()
    }

    #[test]
    fn only_linked_versions_are_components() {
        let two = two();
        let purls: Vec<&str> = two.iter().map(|c| c.purl.as_str()).collect();
        assert_eq!(
            purls,
            ["pkg:cargo/dwell-cli@0.1.0", "pkg:cargo/small@1.2.3"]
        );
        assert_eq!(two[0].uses, ["pkg:cargo/small@1.2.3"]);
        assert_eq!(two[1].licence, "MIT OR Apache-2.0");
        assert_eq!(two[1].sha256, "abcd");
        assert!(two[0].is_own && !two[1].is_own);
    }

    #[test]
    fn crate_that_metadata_lacks_is_an_error() {
        let metadata = json!({"packages": [], "resolve": {"nodes": []}});
        assert!(crates("small v1.2.3\n", &metadata, "").is_err());
    }

    #[test]
    fn notices_have_each_text_once_and_no_own_crate() {
        let mut all = two();
        all[1].texts = vec!["The licence".into()];
        let mut other = all[1].clone();
        other.name = "other".into();
        all.push(other);
        let text = notices(&all);
        assert_eq!(text.matches("\nThe licence\n").count(), 1);
        assert!(text.contains("- small 1.2.3: MIT OR Apache-2.0, https://example.org\n"));
        assert!(text.contains("\nsmall 1.2.3, other 1.2.3\n"), "{text}");
        assert!(!text.contains("dwell-cli"));
    }

    #[test]
    fn page_has_modules_and_their_dependencies() {
        let lock = json!({"packages": {
            "": {"dependencies": {"@a/b": "1"}, "devDependencies": {"vite": "8"}},
            "node_modules/@a/b": {"version": "1.0.0", "license": "MIT",
                "dependencies": {"core": "2"}},
            "node_modules/core": {"version": "2.0.0", "license": "MIT"},
            "node_modules/vite": {"version": "8.0.0", "license": "MIT"},
        }});
        let found = modules(&lock, Path::new("/nowhere")).unwrap();
        let purls: Vec<&str> = found.iter().map(|c| c.purl.as_str()).collect();
        assert_eq!(purls, ["pkg:npm/%40a/b@1.0.0", "pkg:npm/core@2.0.0"]);
        assert_eq!(found[0].uses, ["pkg:npm/core@2.0.0"]);
    }
}
