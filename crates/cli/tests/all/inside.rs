//! The command contains the agents of the last build.

use std::fs;
use std::path::Path;

/// Whether `whole` contains `part`.
fn holds(whole: &[u8], part: &[u8]) -> bool {
    let Some((first, _)) = part.split_first_chunk::<64>() else {
        return false;
    };
    let mut starts = whole.windows(first.len()).enumerate();
    starts.any(|(at, window)| window == first && whole[at..].starts_with(part))
}

#[test]
fn command_contains_the_agents_of_the_last_build() {
    let own = Path::new(env!("CARGO_BIN_EXE_dwell"));
    let target = own.ancestors().nth(2).unwrap();
    let given_away = target.join("cli/dwell");
    let commands = [own, &given_away];
    for name in ["libdwell.so", "libmono_profiler_dwell.so"] {
        let agent = fs::read(target.join("release").join(name)).unwrap();
        for command in commands.iter().filter(|it| it.exists()) {
            let bytes = fs::read(command).unwrap();
            assert!(
                holds(&bytes, &agent),
                "{} has another {name} inside; ./dwell build mends it",
                command.display()
            );
        }
    }
}
