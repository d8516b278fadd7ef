//! Patterns for names of methods: tables of rules are made of them.

use dwell_profile::{MethodId, Profile};

/// Whether `full`, as `package.Class.method`, is like `pattern`: `*` stands for anything.
fn is_like(pattern: &str, full: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == full,
        // The usual case first: it costs least.
        Some((head, "")) => full.starts_with(head),
        Some(_) => dwell_profile::matches(pattern, full),
    }
}

/// Tops of packages, which those that put a library into a package of their own may leave out.
const TOPS: [&str; 4] = ["io.", "org.", "com.", "net."];

/// The pattern for a library that was relocated into another package: `com.acme.shaded.io.netty`
/// and `com.acme.shaded.netty` are Netty. Classes of the platform are never relocated.
fn relocated(pattern: &str) -> Option<&str> {
    let top = TOPS.iter().find_map(|top| pattern.strip_prefix(top));
    let begins_with_package = pattern.starts_with(|c: char| c.is_ascii_lowercase());
    let is_library = begins_with_package && !dwell_profile::is_of_platform(pattern);
    is_library.then(|| top.unwrap_or(pattern))
}

/// Whether a part of `full`, from one of its packages on, is like `pattern`.
fn ends_like(pattern: &str, full: &str) -> bool {
    let mut dots = full.match_indices('.');
    dots.any(|(at, _)| full.get(at + 1..).is_some_and(|end| is_like(pattern, end)))
}

/// The methods that some patterns name.
pub(crate) struct Set {
    has: Vec<bool>,
    is_empty: bool,
}

impl Set {
    pub(crate) fn new(profile: &Profile, patterns: &[&str]) -> Set {
        let moved: Vec<&str> = patterns.iter().filter_map(|it| relocated(it)).collect();
        let methods = profile.methods().iter().map(|method| {
            let class = profile.names().text(method.class);
            let full = format!("{class}.{}", profile.names().text(method.name));
            let is_moved = |pattern: &&str| ends_like(pattern, &full);
            patterns.iter().any(|pattern| is_like(pattern, &full)) || moved.iter().any(is_moved)
        });
        let has: Vec<bool> = methods.collect();
        Set {
            // Computed once, because every stack needs it.
            is_empty: !has.contains(&true),
            has,
        }
    }

    pub(crate) fn has(&self, method: MethodId) -> bool {
        self.has.get(method as usize) == Some(&true)
    }

    /// Whether no method of the profile is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relocated_packages_are_their_library() {
        for (full, expected) in [
            (
                "io.grpc.netty.shaded.io.netty.channel.nio.NioEventLoop.run",
                true,
            ),
            (
                "com.datastax.shaded.netty.channel.nio.NioEventLoop.run",
                true,
            ),
            (
                "org.apache.flink.shaded.netty4.io.netty.channel.nio.NioEventLoop.run",
                true,
            ),
            ("app.mynetty.channel.nio.NioEventLoop.run", false),
            ("app.netty.channel.nio.NioEventLoop.running", false),
            ("app.NioEventLoop.run", false),
        ] {
            let pattern = relocated("io.netty.channel.nio.NioEventLoop.run").unwrap();
            assert_eq!(ends_like(pattern, full), expected, "{full}");
        }
        let pool = relocated("com.zaxxer.hikari.pool.*").unwrap();
        assert!(ends_like(
            pool,
            "acme.deps.com.zaxxer.hikari.pool.HikariPool.getConnection"
        ));
        // The platform is where it is.
        assert_eq!(relocated("java.lang.Thread.yield*"), None);
        assert_eq!(
            relocated("libjvm.so.*fill_in*"),
            Some("libjvm.so.*fill_in*")
        );
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(is_like(
            "java.lang.String.format",
            "java.lang.String.format"
        ));
        assert!(!is_like(
            "java.lang.String.format",
            "java.lang.String.formatted"
        ));
        assert!(is_like("java.util.regex.*", "java.util.regex.Matcher.find"));
        assert!(is_like(
            "libjvm.so.*fill_in*",
            "libjvm.so.Throwable::fill_in_stack"
        ));
        assert!(!is_like("libjvm.so.*fill_in*", "libc.so.fill_in_stack"));
    }
}
