//! The list of components (SBOM), in the format of CycloneDX 1.5. Pure.

use super::components::Component;
use super::date;
use serde_json::{Value, json};

/// The list, as the text of a JSON file.
#[must_use]
pub fn list(version: &str, time: u64, components: &[Component]) -> String {
    let product = format!("pkg:generic/dwell@{version}");
    let described: Vec<Value> = components.iter().map(describe).collect();
    let edge = |purl: &str, uses: &[String]| json!({"ref": purl, "dependsOn": uses});
    let used: Vec<&String> = components
        .iter()
        .flat_map(|component| &component.uses)
        .collect();
    let roots: Vec<String> = components
        .iter()
        .filter(|component| !used.contains(&&component.purl))
        .map(|component| component.purl.clone())
        .collect();
    let mut edges = vec![edge(&product, &roots)];
    edges.extend(
        components
            .iter()
            .map(|component| edge(&component.purl, &component.uses)),
    );
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": date(time),
            "component": {
                "type": "application",
                "bom-ref": product,
                "purl": product,
                "name": "dwell",
                "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": described,
        "dependencies": edges,
    });
    format!("{list:#}\n")
}

fn describe(component: &Component) -> Value {
    let mut value = json!({
        "type": "library",
        "bom-ref": component.purl,
        "purl": component.purl,
        "name": component.name,
        "version": component.version,
    });
    if !component.licence.is_empty() {
        value["licenses"] = json!([{"expression": component.licence}]);
    }
    if !component.sha256.is_empty() {
        value["hashes"] = json!([{"alg": "SHA-256", "content": component.sha256}]);
    }
    if !component.repository.is_empty() {
        value["externalReferences"] = json!([{"type": "vcs", "url": component.repository}]);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::super::components::tests::two;
    use super::*;

    #[test]
    fn list_has_components_hashes_and_edges() {
        let list: Value = serde_json::from_str(&list("0.1.0", 0, &two())).unwrap();
        assert_eq!(list["bomFormat"], "CycloneDX");
        assert_eq!(list["metadata"]["timestamp"], "1970-01-01T00:00:00Z");
        assert_eq!(list["components"][1]["purl"], "pkg:cargo/small@1.2.3");
        assert_eq!(list["components"][1]["hashes"][0]["content"], "abcd");
        assert_eq!(list["components"][0].get("hashes"), None);
        let edges = list["dependencies"].as_array().unwrap();
        assert_eq!(
            edges[0],
            json!({"ref": "pkg:generic/dwell@0.1.0", "dependsOn": ["pkg:cargo/dwell-cli@0.1.0"]})
        );
        assert_eq!(edges[1]["dependsOn"], json!(["pkg:cargo/small@1.2.3"]));
    }
}
