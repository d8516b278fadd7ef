//! Answers to commands: a file whose first line is `ok` or `error`, for the attaching tool. A
//! process that was started with the agent prints a line on standard error.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

/// Writes the reply to `path`. A symbolic link is refused: other users may write to the directory.
///
/// # Errors
/// Any error of opening or writing.
pub fn write(path: &str, outcome: &Result<String, String>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW);
    let mut file = options.open(path)?;
    let text = match outcome {
        Ok(text) => format!("ok\n{text}"),
        Err(text) => format!("error\n{text}\n"),
    };
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_refused_and_a_file_written() {
        let dir = std::env::temp_dir().join(format!("dwell-reply-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("reply");
        let link = dir.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(write(link.to_str().unwrap(), &Ok(String::new())).is_err());
        write(file.to_str().unwrap(), &Ok("a=1\n".into())).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "ok\na=1\n");
        write(file.to_str().unwrap(), &Err("no".into())).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "error\nno\n");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
