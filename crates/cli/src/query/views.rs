//! The views and macros of a query, as statements for DuckDB.
//!
//! Names of recordings get into SQL only as quoted text, and paths of tables are numbers.

use dwell_export::TABLES;

/// Views of events with a stack, which get its method and line.
const WITH_STACKS: [&str; 7] = [
    "samples",
    "waits",
    "allocations",
    "live",
    "locks",
    "owners",
    "late",
];
/// Tables whose rows are the same in every recording that has them, with their keys.
const SHARED: [(&str, &str); 2] = [("stacks", "stack_id"), ("frames", "frame_id")];

/// The statements for recordings with these names, whose tables are in directories `0`, `1`, ...
pub fn statements(names: &[String]) -> Vec<String> {
    let places = 0..names.len();
    let paths = places.flat_map(|place| TABLES.map(|table| path(place, table)));
    let paths: Vec<String> = paths.collect();
    let mut statements = vec![format!(
        "SET allowed_paths = [{}]; SET enable_external_access = false; \
             SET lock_configuration = true; CREATE SCHEMA tables",
        paths.join(", ")
    )];
    statements.extend(TABLES.map(|table| table_view(table, names)));
    statements.extend(TABLES.map(view));
    statements.push(OTHERS.to_owned());
    statements
}

/// The path of a table, as text in SQL.
fn path(place: usize, table: &str) -> String {
    format!("'{place}/{table}.parquet'")
}

/// Text in SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A view of all recordings' rows as they are in the files, with the name of the recording.
fn table_view(table: &str, names: &[String]) -> String {
    let key = SHARED.iter().find(|(shared, _)| *shared == table);
    let one = |(place, name): (usize, &String)| {
        let path = path(place, table);
        match key {
            Some(_) => format!("SELECT * FROM read_parquet({path})"),
            None => {
                let name = quoted(name);
                format!("SELECT {name} AS recording, * FROM read_parquet({path})")
            }
        }
    };
    let all: Vec<String> = names.iter().enumerate().map(one).collect();
    let all = all.join(" UNION ALL BY NAME ");
    match key {
        Some((_, key)) if names.len() > 1 => {
            format!("CREATE VIEW tables.{table} AS SELECT DISTINCT ON ({key}) * FROM ({all})")
        }
        _ => format!("CREATE VIEW tables.{table} AS {all}"),
    }
}

/// The view of a table with its plain name: events also have their time in the recording and the
/// end of their stack.
fn view(table: &str) -> String {
    let is_event = !matches!(table, "recording" | "threads" | "stacks" | "frames");
    let from = format!("CREATE VIEW {table} AS SELECT e.*");
    // A clock may be read just before the recording says that it begins.
    let at = "greatest(e.time_ns - r.start_ns, 0) / 1e9 AS at_s";
    let with_start = format!("tables.{table} e JOIN tables.recording r USING (recording)");
    if WITH_STACKS.contains(&table) {
        return format!(
            "{from} EXCLUDE (stack_id), {at}, s.method, s.line, s.own_method, e.stack_id \
             FROM {with_start} LEFT JOIN tables.stacks s USING (stack_id)"
        );
    }
    match is_event {
        true => format!("{from}, {at} FROM {with_start}"),
        false => format!("{from} FROM tables.{table} e"),
    }
}

/// Views over several tables, and macros.
const OTHERS: &str = include_str!("views.sql");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_and_paths_are_numbers() {
        let name = "o'd'; DROP VIEW x; --".to_owned();
        let statement = table_view("samples", &[name]);
        assert_eq!(
            statement,
            "CREATE VIEW tables.samples AS SELECT 'o''d''; DROP VIEW x; --' AS recording, * \
             FROM read_parquet('0/samples.parquet')"
        );
    }

    #[test]
    fn stacks_of_several_recordings_are_there_once() {
        let names = ["a".to_owned(), "b".to_owned()];
        let statement = table_view("stacks", &names);
        assert!(statement.contains("DISTINCT ON (stack_id)"), "{statement}");
        assert!(!table_view("samples", &names).contains("DISTINCT"));
    }

    #[test]
    fn configuration_is_locked_before_any_view() {
        let statements = statements(&["a".to_owned()]);
        assert!(statements[0].contains("SET lock_configuration = true"));
        assert!(!statements[0].contains("VIEW"));
        assert_eq!(statements.len(), 1 + 2 * TABLES.len() + 1);
    }
}
