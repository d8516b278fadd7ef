//! Names of libraries: a jar, a folder of classes, or a module, derived from the origin of a class
//! in a recording. Pure.

/// Endings of files that have classes.
const ARCHIVES: [&str; 5] = [".jar", ".war", ".ear", ".zip", ".jmod"];
/// Number of names at the end of a folder's path that identify it.
const FOLDERS: usize = 3;

/// The library of a class of `module` whose jar is at `location`; both may be empty. `None` if
/// nothing is known.
pub(crate) fn library(module: &str, location: &str) -> Option<String> {
    let named = || (!module.is_empty()).then(|| module.to_owned());
    if let Some(of_jdk) = location.strip_prefix("jrt:/") {
        let of_jdk = of_jdk.split('/').next().unwrap_or("");
        return named().or_else(|| (!of_jdk.is_empty()).then(|| of_jdk.to_owned()));
    }
    file(location).or_else(named)
}

/// The jar or folder at an address; of jars inside of jars the inner one.
fn file(location: &str) -> Option<String> {
    let mut rest = location;
    while let Some((scheme, inner)) = rest.split_once(':') {
        let is_scheme = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric());
        if !is_scheme {
            break;
        }
        rest = inner;
    }
    let mut parts = rest.split('!').map(|part| part.trim_end_matches('/'));
    let mut outer = parts.next()?;
    let mut inner = "";
    for part in parts.filter(|part| !part.is_empty()) {
        if !inner.is_empty() {
            outer = inner;
        }
        inner = part;
    }
    let innermost = if inner.is_empty() { outer } else { inner };
    let name = last(innermost);
    let text = if name.is_empty() {
        return None;
    } else if ARCHIVES.iter().any(|ending| name.ends_with(ending)) {
        name.to_owned()
    } else if !inner.is_empty() {
        format!("{}!/{}", last(outer), inner.trim_start_matches('/'))
    } else if rest.ends_with('/') {
        format!("{}/", folders(outer))
    } else {
        name.to_owned()
    };
    Some(decoded(&text))
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The last names of a path: `classes` alone says little.
fn folders(path: &str) -> &str {
    let at = path.rmatch_indices('/').nth(FOLDERS - 1);
    at.map_or(path, |(at, _)| path.get(at + 1..).unwrap_or(path))
}

/// Without `%20` and the like.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn libraries_are_jars_folders_and_modules() {
        for (module, location, name) in [
            (
                "",
                "file:/opt/app/lib/netty-buffer-4.1.jar",
                "netty-buffer-4.1.jar",
            ),
            ("acme.core", "file:///mods/acme-core.jar", "acme-core.jar"),
            ("java.base", "", "java.base"),
            ("java.base", "jrt:/java.base", "java.base"),
            ("", "jrt:/jdk.compiler", "jdk.compiler"),
            ("", "file:/src/shop/target/classes/", "shop/target/classes/"),
            ("", "file:/classes/", "/classes/"),
            ("", "jar:file:/a/app.jar!/BOOT-INF/lib/x-1.jar!/", "x-1.jar"),
            (
                "",
                "jar:nested:/a/app.jar/!BOOT-INF/lib/x-1.jar!/",
                "x-1.jar",
            ),
            (
                "",
                "jar:file:/a/app.jar!/BOOT-INF/classes!/",
                "app.jar!/BOOT-INF/classes",
            ),
            (
                "",
                "jar:nested:/a/app.jar/!BOOT-INF/classes/!/",
                "app.jar!/BOOT-INF/classes",
            ),
            ("", "jar:file:/a/app.jar!/", "app.jar"),
            ("", "vfs:/content/shop.war/WEB-INF/lib/y.jar/", "y.jar"),
            ("", "reference:file:plugins/z_1.0.jar", "z_1.0.jar"),
            ("", "https://repository.example/w.jar", "w.jar"),
            ("", "file:/with%20blank/my%20lib.jar", "my lib.jar"),
            ("", "file:/groovy/script", "script"),
        ] {
            assert_eq!(
                library(module, location).as_deref(),
                Some(name),
                "{location}"
            );
        }
        for (module, location) in [("", ""), ("", "file:/"), ("", "jrt:/"), ("", "!")] {
            assert_eq!(library(module, location), None, "{location}");
        }
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("a%zzb%ff"), "a%zzb%ff");
    }

    proptest! {
        #[test]
        fn any_address_will_do(module in "\\PC{0,5}", location in "[a-z:/!%.0-9é]{0,40}") {
            let name = library(&module, &location);
            prop_assert!(name.is_none_or(|name| !name.is_empty()));
        }
    }
}
