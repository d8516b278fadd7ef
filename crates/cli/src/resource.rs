//! Attributes of the process in exported profiles, from the variables that OpenTelemetry defines:
//! `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`. Pure but for [`from_environment`].

use dwell_jfr::redact::Secrets;

/// The name of the service, which may come from both variables.
const SERVICE: &str = "service.name";

/// The attributes that the environment names; values of secrets are redacted.
pub fn from_environment(secrets: &Secrets) -> Vec<(String, String)> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    attributes(
        &variable("OTEL_RESOURCE_ATTRIBUTES"),
        &variable("OTEL_SERVICE_NAME"),
        secrets,
    )
}

/// Attributes from `name=value,name=value`, with percent-encoded values. The service's own variable
/// takes precedence. Words without `=` are ignored, like in OpenTelemetry's SDKs.
fn attributes(list: &str, service: &str, secrets: &Secrets) -> Vec<(String, String)> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.trim().to_owned(), decoded(value.trim())));
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in pairs.filter(|(name, _)| !name.is_empty()) {
        let shown = secrets.words([format!("{name}={value}").as_str()]);
        let value = shown.strip_prefix(&format!("{name}=")).unwrap_or(&shown);
        // The last value of a name counts.
        found.retain(|(other, _)| *other != name);
        found.push((name, value.to_owned()));
    }
    if !service.is_empty() {
        found.retain(|(name, _)| name != SERVICE);
        found.push((SERVICE.to_owned(), service.to_owned()));
    }
    found
}

/// Decodes `%20` to a blank. Invalid sequences stay unchanged.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = behind
            .get(..2)
            .and_then(|code| std::str::from_utf8(code).ok());
        let code = code.filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match code.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or(&[]);
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(list: &str, service: &str) -> Vec<String> {
        let found = attributes(list, service, &Secrets::default()).into_iter();
        found
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    #[test]
    fn pairs_are_decoded_and_the_service_takes_precedence() {
        assert_eq!(
            found(
                "region=eu%20west, a=b=c,service.name=x,broken,=y,a=d",
                "shop"
            ),
            ["region=eu west", "a=d", "service.name=shop"]
        );
        assert_eq!(found("service.name=x", ""), ["service.name=x"]);
        assert_eq!(found("", ""), Vec::<String>::new());
        assert_eq!(found("a=100%,b=%zz", ""), ["a=100%", "b=%zz"]);
    }

    #[test]
    fn secrets_are_redacted() {
        assert_eq!(found("db.password=hunter2", ""), ["db.password=[redacted]"]);
        let shown = attributes("db.password=hunter2", "", &Secrets::none());
        assert_eq!(shown[0].1, "hunter2");
    }

    proptest! {
        #[test]
        fn any_text_is_decoded(list in any::<String>(), service in any::<String>()) {
            let _ = attributes(&list, &service, &Secrets::default());
        }
    }
}
