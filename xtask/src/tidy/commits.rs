//! Subjects of commits: at most 72 characters, since the last tag. Without a tag, or in a clone
//! without history, the last commits that are there. Must not fail where Git is not.

use crate::tidy::Violation;
use std::path::Path;
use std::process::Command;

/// Characters in a subject, at most.
const SUBJECT_CHARS: usize = 72;
/// Commits that are checked without a tag.
const LAST: usize = 50;

/// Checks the commits of the repository at `root`, if it is one.
pub fn check(root: &Path, violations: &mut Vec<Violation>) {
    if let Some(log) = log(root) {
        subjects(&log, violations);
    }
}

/// The abbreviated ids and subjects of the commits, one a line.
fn log(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    // An unpacked archive may lie inside of another repository.
    let is_root = std::fs::canonicalize(top.trim()).ok()? == std::fs::canonicalize(root).ok()?;
    if !is_root {
        return None;
    }
    let range = match git(root, &["describe", "--tags", "--abbrev=0", "HEAD"]) {
        Some(tag) => vec![format!("{}..HEAD", tag.trim())],
        None => vec![format!("--max-count={LAST}"), "HEAD".to_owned()],
    };
    let mut words = vec!["log", "--format=%h %s"];
    words.extend(range.iter().map(String::as_str));
    words.push("--");
    git(root, &words)
}

fn git(root: &Path, words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Git sets these for hooks. They would select another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    let done = command.arg("-C").arg(root).args(words).output().ok()?;
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    done.status.success().then_some(output)
}

/// Checks lines of ids and subjects.
fn subjects(log: &str, violations: &mut Vec<Violation>) {
    for line in log.lines() {
        let (id, subject) = line.split_once(' ').unwrap_or((line, ""));
        let length = subject.chars().count();
        let mut add = |what: String| {
            violations.push(Violation {
                path: format!("commit {id}"),
                line: 1,
                rule: "commit",
                what,
            });
        };
        if length > SUBJECT_CHARS {
            add(format!(
                "the subject has {length} characters; at most {SUBJECT_CHARS}: {subject}"
            ));
        }
        let first = subject.split([' ', ':']).next().unwrap_or_default();
        if first.eq_ignore_ascii_case("wip") {
            add(format!("unfinished work is not committed: {subject}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(log: &str) -> Vec<String> {
        let mut violations = Vec::new();
        subjects(log, &mut violations);
        violations.into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn long_and_unfinished_subjects_are_reported() {
        assert_eq!(broken(&format!("a {}\n", "é".repeat(72))), [] as [&str; 0]);
        let log = format!("a {}\nb wip\nc WIP: x\nd wipe it\n", "é".repeat(73));
        assert_eq!(broken(&log), ["commit a", "commit b", "commit c"]);
        assert_eq!(broken("a\n\n"), [] as [&str; 0]);
    }

    /// A repository with commits of these subjects, in a folder of its own; `None` without Git.
    fn repository(name: &str, subjects: &[&str]) -> Option<std::path::PathBuf> {
        if git(Path::new("."), &["--version"]).is_none() {
            println!("skipped: no git");
            return None;
        }
        let folder = format!("dwell-xtask-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(folder);
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(&root).unwrap();
        assert!(git(&root, &["init", "--quiet"]).is_some(), "git init");
        subjects.iter().for_each(|subject| commit(&root, subject));
        Some(root)
    }

    fn commit(root: &Path, subject: &str) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let what = ["commit", "--quiet", "--allow-empty", "--no-verify", "-m"];
        let words = [&who[..], &what[..], &[subject]].concat();
        assert!(git(root, &words).is_some(), "{subject}");
    }

    fn checked(root: &Path) -> usize {
        log(root).map_or(0, |log| log.lines().count())
    }

    #[test]
    fn range_begins_at_the_last_tag() {
        let Some(root) = repository("tagged", &["one", "two"]) else {
            return;
        };
        assert_eq!(checked(&root), 2);
        assert!(git(&root, &["tag", "v1"]).is_some());
        assert_eq!(checked(&root), 0);
        commit(&root, "three");
        assert_eq!(checked(&root), 1);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn range_without_a_tag_has_fifty_commits() {
        let subjects = vec!["one"; LAST + 2];
        let Some(root) = repository("untagged", &subjects) else {
            return;
        };
        assert_eq!(checked(&root), LAST);
        let shallow = root.join("shallow");
        let url = format!("file://{}", root.display());
        let words = ["clone", "--quiet", "--depth=3", &url, "shallow"];
        assert!(git(&root, &words).is_some());
        assert_eq!(checked(&shallow), 3);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn folder_inside_another_repository_is_not_checked() {
        let Some(root) = repository("outer", &["one"]) else {
            return;
        };
        let inner = root.join("inner");
        std::fs::create_dir(&inner).unwrap();
        assert_eq!(checked(&inner), 0);
        assert_eq!(checked(&root), 1);
        assert_eq!(checked(Path::new("/")), 0);
        let empty = repository("empty", &[]).expect("there is git");
        assert_eq!(checked(&empty), 0);
        std::fs::remove_dir_all(&root).unwrap();
        std::fs::remove_dir_all(&empty).unwrap();
    }
}
