//! Names that are the same in each run of a program: without the numbers and addresses that the JVM
//! gives to classes it makes.

/// Numbers behind these are counters of the JVM.
const COUNTED: &[&str] = &[
    "$$Lambda$",
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "GeneratedSerializationConstructorAccessor",
    "$Proxy",
    "LambdaForm$MH$",
    "LambdaForm$DMH$",
];

/// The name without what changes from run to run.
#[must_use]
pub fn stable(name: &str) -> String {
    let mut text = without_addresses(name);
    for counted in COUNTED {
        let Some(at) = text.find(counted).map(|at| at + counted.len()) else {
            continue;
        };
        let rest = text.get(at..).unwrap_or("");
        let left = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        text = format!("{}{left}", text.get(..at).unwrap_or(""));
    }
    without_serial(text.replace("$$Lambda$.", "$$Lambda."))
}

/// The JDK's recorder writes `a.B$$Lambda$14.1800031768`: no method's name begins with a digit.
fn without_serial(mut text: String) -> String {
    const LAMBDA: &str = "$$Lambda.";
    if let Some(at) = text.find(LAMBDA).map(|at| at + LAMBDA.len()) {
        let rest = text.get(at..).unwrap_or("");
        let left = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if left.len() < rest.len() {
            let left = left.strip_prefix('.').unwrap_or(left).to_owned();
            text.truncate(at);
            text.push_str(&left);
        }
    }
    text
}

/// Hidden classes end in `+0x` or `/0x` and an address, in the JDK's own recordings in `.0x`.
fn without_addresses(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = ["+0x", "/0x", ".0x"]
        .iter()
        .filter_map(|start| rest.find(start))
        .min()
    {
        let (head, tail) = rest.split_at(at);
        let digits = tail.get(3..).unwrap_or("");
        text.push_str(head);
        rest = digits.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_give_the_same_names() {
        for (name, expected) in [
            ("a.B$$Lambda$67+0x00007feed400e208.call", "a.B$$Lambda.call"),
            ("a.B$$Lambda+0x0000000095041c30.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda/0x0000000095041c30.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda.0x0000000095041c30.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda.1800031768.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda$14.1800031768.run", "a.B$$Lambda.run"),
            ("a.LambdaForm$MH.0x00ab.invoke", "a.LambdaForm$MH.invoke"),
            (
                "jdk.GeneratedMethodAccessor12.invoke",
                "jdk.GeneratedMethodAccessor.invoke",
            ),
            ("com.sun.$Proxy3.get", "com.sun.$Proxy.get"),
            ("a.B.m12", "a.B.m12"),
            ("a.$Proxied7.x", "a.$Proxied7.x"),
            ("+0x", ""),
        ] {
            assert_eq!(stable(name), expected);
        }
    }
}
