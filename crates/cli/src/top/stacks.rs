//! Stacks, and trees of callers and callees of a method. Pure; without recursion, because the
//! program determines the depth of a stack.

use super::drilled::Scope;
use super::sheet::{Cell, Column, Row, Table, Target};
use super::window::{Kind, Snapshot, Time};
use dwell_profile::{CallTree, NodeId, TreeBuilder};
use dwell_wall::cause::Cause;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

const STACKS: &[Column] = &[
    Column::number("CPU%", 6),
    Column::number("WALL%", 7),
    Column::text("CAUSE", 11),
];
const CALLS: &[Column] = &[Column::number("CPU%", 6), Column::number("WALL%", 7)];
/// Frames of a stack in its row.
const NAMED: usize = 6;
/// Frames that are followed up or down from a method.
const CALLS_MAX: usize = 256;
/// Frames of one stack that are shown.
const FRAMES_MAX: usize = 10_000;
/// Smaller shares of the method's time are not shown in a tree.
const LEAST: f64 = 0.005;
/// Maximum rows of a tree.
const ROWS_MAX: usize = 1000;

/// The stacks, each with its activity or cause of waiting.
pub fn stacks(snapshot: &Snapshot, scope: &Scope, idle: bool) -> Table {
    let mut sums: BTreeMap<(NodeId, &str), Time> = BTreeMap::new();
    for piece in scope.pieces(snapshot, idle) {
        let at = (piece.node, snapshot.cause(piece));
        *sums.entry(at).or_default() += &piece.time;
    }
    // Names are long, so only the rows that can be at the top get them.
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, time)| std::cmp::Reverse(time.cpu.max(time.wall)));
    sums.truncate(ROWS_MAX);
    let row = |((node, cause), time): ((NodeId, &str), Time)| Row {
        key: key(snapshot, node, cause),
        cells: vec![
            Cell::share(snapshot.rate(time.cpu)),
            Cell::share(snapshot.rate(time.wall)),
            Cell::words(cause.to_owned(), snapshot.rate(time.wall)),
        ],
        name: summary(snapshot, node, cause),
        depth: 0,
        target: Target::Stack(node),
    };
    Table {
        columns: STACKS,
        title: "STACK (innermost first)",
        rows: sums.into_iter().map(row).collect(),
        is_tree: false,
        empty: "no time was seen here",
    }
}

fn name(snapshot: &Snapshot, key: u32) -> &str {
    let names = &snapshot.methods.names;
    names.get(key as usize).map_or("", String::as_str)
}

/// A key that is the same for the same stack in each snapshot.
fn key(snapshot: &Snapshot, node: NodeId, cause: &str) -> String {
    let mut hasher = DefaultHasher::new();
    cause.hash(&mut hasher);
    for key in snapshot.tree.stack(node) {
        name(snapshot, key).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

/// Class and method without the package.
pub fn short(method: &str) -> &str {
    let mut dots = method.rmatch_indices('.');
    let (_, before) = (dots.next(), dots.next());
    // A library's name has its own dots.
    match before {
        Some((at, _)) if !method.contains(".so") => method.get(at + 1..).unwrap_or(method),
        _ => method,
    }
}

/// The most telling frames: the innermost one, the innermost of Java, and the program's own.
fn summary(snapshot: &Snapshot, node: NodeId, cause: &str) -> String {
    let kind = |key: u32| snapshot.kinds.get(key as usize).copied();
    let keys = || snapshot.tree.stack(node);
    let has = |wanted| keys().any(|key| kind(key) == Some(wanted));
    let has_program = has(Kind::Program);
    let has_java = has_program || has(Kind::Jdk);
    // The cause already names the system call in which a thread waits.
    let runs = [Cause::Running, Cause::Runnable, Cause::Throttled]
        .map(Cause::name)
        .contains(&cause);
    let mut named: Vec<u32> = Vec::new();
    let mut is_in_java = false;
    for key in keys() {
        let is_java = kind(key).is_some_and(|kind| kind != Kind::Native);
        let is_first_of_java = is_java && !is_in_java;
        is_in_java |= is_java;
        let is_told = match has_program {
            true => is_first_of_java || kind(key) == Some(Kind::Program),
            false => is_java || !has_java,
        };
        let is_where = named.is_empty() && runs;
        let is_repeated = named.last() == Some(&key);
        if (is_told || is_where) && !is_repeated {
            named.push(key);
        }
        if named.len() >= NAMED {
            break;
        }
    }
    let named: Vec<&str> = named
        .into_iter()
        .map(|key| short(name(snapshot, key)))
        .collect();
    match named.is_empty() {
        true => "[no stack]".to_owned(),
        false => named.join(" < "),
    }
}

/// The frames of a stack, innermost first, in its most frequent form.
pub fn frames(snapshot: &Snapshot, scope: &Scope, node: NodeId) -> Vec<String> {
    let mut places: BTreeMap<NodeId, u64> = BTreeMap::new();
    for piece in scope
        .pieces(snapshot, true)
        .filter(|piece| piece.node == node)
    {
        *places.entry(piece.place).or_default() += piece.time.wall.max(piece.time.cpu);
    }
    let most = places.into_iter().max_by_key(|(_, time)| *time);
    let Some((place, _)) = most else {
        return Vec::new();
    };
    let profile = &snapshot.profile;
    let line = |frame: u32| {
        let (id, _) = profile.method_of(frame)?;
        let frame = profile.frames().get(frame as usize)?;
        let line = match frame.line {
            0 => String::new(),
            line => format!(":{line}"),
        };
        Some(format!(
            "{}{line}  [{}]",
            profile.method_name(id),
            frame.kind.label()
        ))
    };
    profile
        .tree()
        .stack(place)
        .take(FRAMES_MAX)
        .filter_map(line)
        .collect()
}

/// The callers or callees of the scope's method, as a tree with the method at its root.
pub fn calls(snapshot: &Snapshot, scope: &Scope, idle: bool, is_callees: bool) -> Table {
    let Some(method) = &scope.method else {
        return Table::default();
    };
    let names = &snapshot.methods.names;
    let group = names.iter().position(|name| name == method);
    let mut sums: BTreeMap<NodeId, Time> = BTreeMap::new();
    for piece in scope.pieces(snapshot, idle) {
        *sums.entry(piece.node).or_default() += &piece.time;
    }
    let mut builder = TreeBuilder::default();
    let mut own: Vec<(NodeId, Time)> = Vec::new();
    for (node, time) in sums {
        let stack: Vec<u32> = snapshot.tree.stack(node).collect();
        // The outermost call, with recursive calls below it.
        let outermost = stack.iter().rposition(|key| Some(*key as usize) == group);
        let Some(outermost) = outermost else { continue };
        let (inner, outer) = stack.split_at(outermost);
        let root = builder.child(CallTree::ROOT, stack.get(outermost).copied().unwrap_or(0));
        let follow = |node, key: &u32| (node, *key);
        let mut at = root;
        let keys: Vec<u32> = match is_callees {
            true => inner.iter().rev().take(CALLS_MAX).copied().collect(),
            false => outer.iter().skip(1).take(CALLS_MAX).copied().collect(),
        };
        for key in &keys {
            let (parent, key) = follow(at, key);
            at = builder.child(parent, key);
        }
        own.push((at, time));
    }
    let tree = builder.finish();
    let mut times = vec![Time::default(); tree.len()];
    for (node, time) in own {
        if let Some(sum) = times.get_mut(node as usize) {
            *sum += &time;
        }
    }
    Table {
        columns: CALLS,
        title: match is_callees {
            true => "CALLEES (c: callers)",
            false => "CALLERS (c: callees)",
        },
        rows: rows(snapshot, &tree, &tree.totals(&times)),
        is_tree: true,
        empty: "no time was seen in this method",
    }
}

fn rows(snapshot: &Snapshot, tree: &CallTree, totals: &[Time]) -> Vec<Row> {
    let time = |node: NodeId| totals.get(node as usize).copied().unwrap_or_default();
    let all = time(CallTree::ROOT);
    let least = Time {
        cpu: (all.cpu as f64 * LEAST) as u64,
        wall: (all.wall as f64 * LEAST) as u64,
    };
    let mut rows: Vec<Row> = Vec::new();
    // The path of keys to this row, and the depth of each row. A chain of single children is not
    // indented.
    let mut path: Vec<u32> = Vec::new();
    let mut depths: Vec<usize> = vec![0];
    let mut hidden = 0u32;
    tree.walk(
        |children| {
            children.sort_by_key(|child| {
                let time = time(*child);
                std::cmp::Reverse((time.cpu, time.wall))
            });
        },
        |node, is_entering| {
            if !is_entering {
                match hidden {
                    0 => {
                        path.pop();
                        depths.pop();
                    }
                    _ => hidden -= 1,
                }
                return;
            }
            let sum = time(node);
            let is_small = sum.cpu <= least.cpu && sum.wall <= least.wall;
            if hidden > 0 || is_small || rows.len() >= ROWS_MAX {
                hidden += 1;
                return;
            }
            let depth = depths.last().copied().unwrap_or(0);
            let siblings = tree.children(tree.parent(node)).len();
            let depth = depth + usize::from(siblings > 1);
            path.push(tree.key(node));
            depths.push(depth);
            let mut hasher = DefaultHasher::new();
            for key in &path {
                name(snapshot, *key).hash(&mut hasher);
            }
            let method = name(snapshot, tree.key(node)).to_owned();
            rows.push(Row {
                key: format!("{:016x}", hasher.finish()),
                cells: vec![
                    Cell::share(snapshot.rate(sum.cpu)),
                    Cell::share(snapshot.rate(sum.wall)),
                ],
                name: method.clone(),
                depth,
                target: Target::Method(method),
            });
        },
    );
    rows
}
