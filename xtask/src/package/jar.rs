//! The jars for Maven: the API, and the agent with its library. Pure.

use super::archive::Entry;
use super::zip_archive::{unzip, zip};
use super::{Inputs, Product};
use anyhow::{Context, Result};

const MANIFEST: &str = "META-INF/MANIFEST.MF";
const GROUP: &str = "io.dwell";

/// A jar, with its description (POM) for Maven.
struct Jar<'a> {
    artifact: &'a str,
    about: &'a str,
    module: &'a str,
    /// Further lines of the manifest.
    manifest: &'a str,
    /// The jar as the JDK has built it.
    built: &'a [u8],
    added: Vec<Entry>,
}

/// `dwell-agent-VERSION.jar`, `dwell-api-VERSION.jar`, and their descriptions.
///
/// # Errors
/// The built jars cannot be read.
pub fn jars(inputs: &Inputs) -> Result<Vec<Product>> {
    let agent = Jar {
        artifact: "dwell-agent",
        about: "Records the JVM in which it is loaded: dwell's agent with its library",
        module: "io.dwell.agent",
        manifest: "Premain-Class: io.dwell.agent.DwellAgent\r\n\
                   Agent-Class: io.dwell.agent.DwellAgent\r\n",
        built: &inputs.agent_classes,
        added: vec![
            Entry::file("io/dwell/agent/libdwell.so", inputs.agent.clone()),
            Entry::file("META-INF/THIRD-PARTY.txt", inputs.notices.clone()),
        ],
    };
    let mut products = Vec::new();
    for jar in [agent, api(inputs)] {
        let name = format!("{}-{}", jar.artifact, inputs.version);
        products.push(Product::new(
            format!("{name}.pom"),
            jar.pom(&inputs.version),
        ));
        products.push(Product::new(format!("{name}.jar"), jar.bytes(inputs)?));
    }
    Ok(products)
}

/// The bytes of `dwell-api.jar`, as the other packages have it.
///
/// # Errors
/// The built jar cannot be read.
pub fn api_jar(inputs: &Inputs) -> Result<Vec<u8>> {
    api(inputs).bytes(inputs)
}

fn api(inputs: &Inputs) -> Jar<'_> {
    Jar {
        artifact: "dwell-api",
        about: "Reports the requests of a program to dwell's agent",
        module: "io.dwell.api",
        manifest: "",
        built: &inputs.api_jar,
        added: Vec::new(),
    }
}

impl Jar<'_> {
    fn bytes(mut self, inputs: &Inputs) -> Result<Vec<u8>> {
        let built = unzip(self.built).with_context(|| format!("{}.jar", self.artifact))?;
        let mut entries: Vec<Entry> = built
            .into_iter()
            .filter(|entry| entry.path != MANIFEST)
            .collect();
        entries.append(&mut self.added);
        entries.push(Entry::file("META-INF/LICENSE", inputs.license.clone()));
        let manifest = format!(
            "Manifest-Version: 1.0\r\n\
             Implementation-Title: {}\r\n\
             Implementation-Version: {}\r\n\
             Automatic-Module-Name: {}\r\n\
             {}\r\n",
            self.artifact, inputs.version, self.module, self.manifest
        );
        zip(Some(&Entry::file(MANIFEST, manifest)), &entries)
    }

    fn pom(&self, version: &str) -> String {
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{GROUP}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <name>{artifact}</name>
  <description>{about}</description>
  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
    </license>
  </licenses>
</project>
"#,
            artifact = self.artifact,
            about = self.about,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::made;
    use super::*;

    #[test]
    fn agent_jar_has_classes_library_and_manifest() {
        let products = jars(&made()).unwrap();
        let names: Vec<&str> = products.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "dwell-agent-1.2.3.pom",
                "dwell-agent-1.2.3.jar",
                "dwell-api-1.2.3.pom",
                "dwell-api-1.2.3.jar"
            ]
        );
        let entries = unzip(&products[1].bytes).unwrap();
        let paths: Vec<&str> = entries.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                MANIFEST,
                "META-INF/LICENSE",
                "META-INF/THIRD-PARTY.txt",
                "io/dwell/agent/DwellAgent.class",
                "io/dwell/agent/libdwell.so"
            ]
        );
        let manifest = String::from_utf8(entries[0].bytes.clone()).unwrap();
        assert!(manifest.contains("\r\nPremain-Class: io.dwell.agent.DwellAgent\r\n"));
        assert!(manifest.ends_with("\r\n\r\n"), "an empty line ends it");
        assert_eq!(entries[4].bytes, b"agent");
    }

    #[test]
    fn descriptions_name_group_artifact_and_version() {
        let pom = String::from_utf8(jars(&made()).unwrap()[2].bytes.clone()).unwrap();
        for part in [
            "io.dwell</groupId>",
            "dwell-api</artifactId>",
            "1.2.3</version>",
        ] {
            assert!(pom.contains(part), "{part}");
        }
    }
}
