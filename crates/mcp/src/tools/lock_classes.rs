//! The tool `locks`: time blocked by the class of the lock, with owners and waiting methods.

use super::{Tool, head, opened};
use crate::answer::{
    Answer, Unit, amount, amount_schema, list, number, object, rounded, schema, string, typed,
};
use crate::arguments::Arguments;
use crate::recordings::Recordings;
use crate::selection::{Event, FILE, LIMIT_OF_ROWS, OFFSET, Selection, cautions, lock_of, page};
use dwell_profile::{Lack, LockClass, OwnerRow, Profile, Weight, group_of};
use dwell_report::{count, duration};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Names of owners and waiters of a lock.
const NAMES: usize = 4;

pub(crate) const LOCKS: Tool = Tool {
    name: "locks",
    title: "Locks that threads waited for",
    about: "Time blocked by the class of the lock, the most first: number of waits, the longest, \
            groups of threads that held it (digits of names as *), the methods of the holders, and \
            the methods that waited. owners, ownersAt and waiters have percents of the blocked \
            time; ownersAt of that with a known place.",
    arguments: || vec![FILE, LIMIT_OF_ROWS, OFFSET],
    output,
    answer,
};

fn output() -> Value {
    let part = || {
        let fields = [("name", string()), ("percent", number())];
        list(object(&fields))
    };
    let holder = object(&[
        ("methods", list(string())),
        ("group", typed(&["string", "null"])),
        ("waiter", typed(&["string", "null"])),
        ("blocked", string()),
    ]);
    let row = object(&[
        ("name", string()),
        ("total", amount_schema()),
        ("waits?", number()),
        ("longest?", string()),
        ("source", string()),
        ("owners", part()),
        ("ownersAt", part()),
        ("waiters", part()),
        ("holders", list(holder)),
    ]);
    schema(&head(), row)
}

fn answer(recordings: &mut Recordings, arguments: &Arguments) -> Result<Answer, String> {
    let (profile, mut answer) = opened(recordings, arguments, "Locks by blocked time")?;
    let has_events = profile.has_locks();
    let classes = match has_events {
        true => profile.lock_classes(),
        false => of_wall_time(&profile)?,
    };
    let mut whole = Weight::default();
    classes.iter().for_each(|class| whole += &class.blocked);
    answer.put("unit", Unit::Nanoseconds.label());
    answer.put("total", amount(&whole, &whole, Unit::Nanoseconds));
    let owners = profile.owner_rows();
    answer.rows_in_all = classes.len();
    let rows = page(arguments).of(&classes);
    answer.rows = rows.map(|class| row(class, &whole, &owners)).collect();
    match profile.monitor_sums() {
        Some(sums) => answer.notes.push(format!(
            "monitors: {} waits of {} in all, exact; {} waits of {} were lost",
            count(sums.waits),
            duration(sums.blocked_ns),
            count(sums.lost),
            duration(sums.lost_ns),
        )),
        None if has_events => answer.notes.push(
            "monitors: only waits that lasted longer than the recorder's threshold".to_owned(),
        ),
        None => answer.notes.push(format!(
            "from wall-clock samples, without numbers of waits; {}",
            profile.info().remedy(Lack::Locks)
        )),
    }
    answer.notes.extend(cautions(&profile));
    Ok(answer)
}

/// The parts of some time, the largest first.
fn parts(names: &[(String, u64)], of: u64) -> Vec<Value> {
    let names = names.iter().take(NAMES);
    let part = |ns: u64| rounded(100.0 * ns as f64 / of.max(1) as f64);
    names
        .map(|(name, ns)| json!({ "name": name, "percent": part(*ns) }))
        .collect()
}

fn row(class: &LockClass, whole: &Weight, owners: &[OwnerRow]) -> Value {
    let all = class.blocked.sum;
    let known = class.owners_at.iter();
    let known = known.fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
    let holders = owners.iter().filter(|row| row.class == class.name);
    let holders = holders.filter(|row| !row.methods.is_empty()).take(NAMES);
    let holders = holders.map(|row| {
        json!({
            "methods": row.methods,
            "group": row.group,
            "waiter": row.waiter,
            "blocked": duration(row.blocked.sum),
        })
    });
    let mut value = json!({
        "name": class.name,
        "total": amount(&class.blocked, whole, Unit::Nanoseconds),
        "source": if class.is_looks { "wall-clock samples" } else { "waits" },
        "owners": parts(&class.owners, all),
        "ownersAt": parts(&class.owners_at, known),
        "waiters": parts(&class.waiters, all),
        "holders": holders.collect::<Vec<Value>>(),
    });
    if class.waits > 0.0 {
        value["waits"] = class.waits.round().into();
    }
    if class.longest_ns > 0 {
        value["longest"] = duration(class.longest_ns).into();
    }
    value
}

/// Locks by wall time, for recordings without waits for locks.
fn of_wall_time(profile: &Profile) -> Result<Vec<LockClass>, String> {
    let mut arguments = serde_json::Map::new();
    arguments.insert("cause".to_owned(), json!(["monitor", "lock"]));
    let arguments = Arguments::check(&[crate::selection::CAUSE], &arguments, &[])?;
    let selection = Selection::new(&arguments, profile, Event::Wall)?;
    type Names = BTreeMap<String, u64>;
    let mut sums: BTreeMap<&str, (Weight, [Names; 3])> = BTreeMap::new();
    for entry in selection.entries(profile) {
        let class = lock_of(&entry).unwrap_or("[unknown class]");
        let (weight, names) = sums.entry(class).or_default();
        *weight += &entry.weight;
        let owner = entry.owner.map(|it| group_of(profile.thread_name(it.0)));
        let owner_at = entry.owner.and_then(|(_, node)| profile.place(node?));
        let found = [owner, owner_at, profile.place(entry.node)];
        for (names, name) in names.iter_mut().zip(found) {
            if let Some(name) = name {
                let sum = names.entry(name).or_default();
                *sum = sum.saturating_add(entry.weight.sum);
            }
        }
    }
    let most_first = |names: Names| {
        let mut names: Vec<(String, u64)> = names.into_iter().collect();
        names.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        names
    };
    let mut classes: Vec<LockClass> = sums
        .into_iter()
        .map(|(name, (blocked, names))| {
            let [owners, owners_at, waiters] = names.map(most_first);
            LockClass {
                name: name.to_owned(),
                blocked,
                waits: 0.0,
                longest_ns: 0,
                is_looks: true,
                owners,
                owners_at,
                is_asked: false,
                waiters,
            }
        })
        .collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.blocked.sum));
    Ok(classes)
}
