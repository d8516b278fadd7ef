//! The container image: one layer from nothing. Pure.
//!
//! Format: "OCI image layout" and "image manifest" of the OCI image specification 1.0, in a tar
//! archive, as `podman load` and `skopeo copy oci-archive:FILE` read it.

use super::archive::{Entry, gzip, tar};
use super::{Inputs, Product, date, deb, sha256};
use anyhow::Result;
use serde_json::{Value, json};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// `dwell-VERSION-oci.tar`.
///
/// # Errors
/// See [`tar`].
pub fn image(inputs: &Inputs) -> Result<Product> {
    let layer = tar(&deb::installed(inputs)?, "", inputs.time)?;
    let packed = gzip(&layer)?;
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "created": date(inputs.time),
        "config": {
            "Entrypoint": ["/usr/bin/dwell"],
            "Cmd": ["--help"],
            "Env": ["PATH=/usr/bin"],
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
    });
    let config = config.to_string().into_bytes();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": describe(CONFIG, &config),
        "layers": [describe(LAYER, &packed)],
    });
    let manifest = manifest.to_string().into_bytes();
    let mut described = describe(MANIFEST, &manifest);
    described["annotations"] = json!({
        "org.opencontainers.image.ref.name": inputs.version,
        "io.containerd.image.name": format!("localhost/dwell:{}", inputs.version),
    });
    let index = json!({"schemaVersion": 2, "manifests": [described]});
    let mut entries = vec![
        Entry::file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
        Entry::file("index.json", index.to_string()),
    ];
    for blob in [config, manifest, packed] {
        let path = format!("blobs/sha256/{}", sha256::hex(&blob));
        entries.push(Entry::file(path, blob));
    }
    Ok(Product::new(
        format!("dwell-{}-oci.tar", inputs.version),
        tar(&entries, "", inputs.time)?,
    ))
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256::hex(bytes))
}

fn describe(kind: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()})
}

#[cfg(test)]
mod tests {
    use super::super::archive::tests::read_with;
    use super::super::tests::made;
    use super::*;

    #[test]
    fn image_leads_from_index_to_layer() {
        let image = image(&made()).unwrap();
        let read = |path: &str| -> String { read_with("tar", &["-xOf", "-", path], &image.bytes) };
        let blob = |described: &Value| {
            let digest = described["digest"].as_str().unwrap();
            let path = format!("blobs/sha256/{}", digest.strip_prefix("sha256:").unwrap());
            let sum = read_with(
                "sh",
                &["-c", &format!("tar -xOf - {path} | sha256sum")],
                &image.bytes,
            );
            assert!(
                path.ends_with(sum.split(' ').next().unwrap()),
                "{path}: {sum}"
            );
            path
        };
        let json = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        let index = json(read("index.json"));
        let manifest = json(read(&blob(&index["manifests"][0])));
        let config = json(read(&blob(&manifest["config"])));
        assert_eq!(config["config"]["Entrypoint"], json!(["/usr/bin/dwell"]));
        let layer = blob(&manifest["layers"][0]);
        let listed = read_with(
            "sh",
            &[
                "-c",
                &format!("tar -xOf - {layer} | tar -tzf - usr/bin/dwell"),
            ],
            &image.bytes,
        );
        assert_eq!(listed, "usr/bin/dwell\n");
        let unpacked = read_with(
            "sh",
            &["-c", &format!("tar -xOf - {layer} | gzip -d | sha256sum")],
            &image.bytes,
        );
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            format!("sha256:{}", unpacked.split(' ').next().unwrap())
        );
    }
}
