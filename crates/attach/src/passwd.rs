//! `/etc/passwd` lines. Pure.

/// Name and home directory of a user, from the text of a passwd file.
pub fn lookup(text: &[u8], uid: u32) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(text);
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let id: u32 = fields.nth(1)?.parse().ok()?;
        let home = fields.nth(2).unwrap_or("/");
        (id == uid).then(|| (crate::procfs::printable(name), home.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_line_with_the_id_counts() {
        let text = b"broken\n:x:7:7::/:/x\nroot:x:0:0:root:/root:/bin/bash\n\
                     a:x:7:7:A,,:/home/a:/bin/sh\nb:x:7:7::/home/b:\n";
        assert_eq!(lookup(text, 7), Some(("a".into(), "/home/a".into())));
        assert_eq!(lookup(text, 0), Some(("root".into(), "/root".into())));
        assert_eq!(lookup(text, 1), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            lookup(&bytes, 0);
        }
    }
}
