//! `dwell ps`.

use crate::units;
use anyhow::Result;
use dwell_attach::Jvm;
use std::time::Duration;

/// Lists the JVMs.
pub fn run() -> Result<String> {
    Ok(table(&dwell_attach::list()?))
}

fn table(all: &[Jvm]) -> String {
    if all.is_empty() {
        return "no JVM or Mono program is running that this user can see\n".to_owned();
    }
    let mut rows = vec![["PID", "USER", "JDK", "UPTIME", "MAIN"].map(str::to_owned)];
    rows.extend(all.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..5).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for [pid, user, jdk, uptime, main] in &rows {
        let line = format!(
            "{pid:>0$}  {user:<1$}  {jdk:<2$}  {uptime:>3$}  {main}",
            widths[0], widths[1], widths[2], widths[3]
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(jvm: &Jvm) -> [String; 5] {
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
    let mut main = dwell_report::plain(&or_unknown(&jvm.main));
    if jvm.foreign {
        main.push_str(&format!("  (in a container, pid {} there)", jvm.ns_pid));
    }
    if !jvm.readable {
        main.push_str(match jvm.uid == crate::sys::user() {
            true => "  (hidden by the kernel)",
            false => "  (belongs to another user)",
        });
    }
    let uptime = jvm
        .uptime_ms
        .map_or("?".to_owned(), |ms| units::age(Duration::from_millis(ms)));
    [
        jvm.pid.to_string(),
        jvm.user.clone(),
        or_unknown(&jvm.version),
        uptime,
        main,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_show_special_states() {
        let plain = Jvm {
            pid: 7,
            ns_pid: 7,
            uid: 0,
            user: "root".into(),
            version: Some("25.0.3".into()),
            main: Some("com.example.Main".into()),
            command: None,
            uptime_ms: Some(61_000),
            foreign: false,
            readable: true,
        };
        let boxed = Jvm {
            pid: 12_345,
            ns_pid: 1,
            user: "4242".into(),
            version: None,
            main: None,
            foreign: true,
            ..plain.clone()
        };
        let hidden = Jvm {
            readable: false,
            uid: crate::sys::user() + 1,
            ..plain.clone()
        };
        let capable = Jvm {
            uid: crate::sys::user(),
            ..hidden.clone()
        };
        let text = table(&[plain, boxed, hidden, capable]);
        assert_eq!(
            text,
            "  PID  USER  JDK     UPTIME  MAIN\n\
             \x20   7  root  25.0.3   1m01s  com.example.Main\n\
             12345  4242  ?        1m01s  ?  (in a container, pid 1 there)\n\
             \x20   7  root  25.0.3   1m01s  com.example.Main  (belongs to another user)\n\
             \x20   7  root  25.0.3   1m01s  com.example.Main  (hidden by the kernel)\n"
        );
        assert!(table(&[]).contains("no JVM"));
    }
}
