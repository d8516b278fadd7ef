//! The tools `tree` and `callers`: calls below a path, and the calls that lead to a method.

use super::{Tool, head, opened};
use crate::answer::{Answer, amount, amount_schema, integer, list, object, schema, string};
use crate::arguments::{Argument, Arguments, Kind};
use crate::recordings::Recordings;
use crate::selection::{
    Event, FILE, FILTERS, LIMIT_OF_ROWS, METHOD, OFFSET, Selection, by_node, groups_named, page,
    sum,
};
use dwell_profile::{
    CallTree, GroupBy, Grouped, NodeId, Profile, TreeBuilder, Weight, merged_tree,
};
use serde_json::{Value, json};

const DEPTH_MAX: u64 = 1000;
/// Default depths.
const CALLS: u64 = 12;
const CALLERS_OF: u64 = 4;
/// Names of folded calls in a row.
const THROUGH: usize = 12;

const PATH: Argument = Argument::new(
    "path",
    Kind::Texts,
    "Methods in the order of calls, the outermost first: only calls below them, of all such paths \
     together. Frames between two of them may be left out. Class.method, with or without \
     packages; * stands for anything. Default: from the root",
);
const DEPTH: Argument = Argument::new(
    "depth",
    Kind::Whole(1, DEPTH_MAX),
    "Maximum depth of rows; default 12 for calls, 4 for callers",
);
const LEAST: Argument = Argument::new(
    "min_percent",
    Kind::Number(0.0, 100.0),
    "Leave out calls with a smaller share of the total; default 1",
);
const BY: Argument = Argument::new(
    "by",
    Kind::Word(&["method", "class", "package"]),
    "Frames to merge; default method",
);
const OF: Argument = Argument::new(
    METHOD.name,
    Kind::Text,
    "The method: Class.method, with or without packages; * stands for anything",
)
.required();

pub(crate) const TREE: Tool = Tool {
    name: "tree",
    title: "Call tree",
    about: "The call tree below a path, as rows in depth-first order, the heaviest calls first. \
            total includes callees, self is without them and absent if it is 0; shares are of the \
            whole selection. A call that only leads to one other is no row: `through` of that row \
            lists such calls, the outermost first, and depth does not count them.",
    arguments: || {
        let own = [FILE, PATH, DEPTH, LEAST, BY];
        [&own, &FILTERS[..], &[LIMIT_OF_ROWS, OFFSET]].concat()
    },
    output: || output(&[("self?", amount_schema()), ("through?", list(string()))]),
    answer: tree,
};

pub(crate) const CALLERS: Tool = Tool {
    name: "callers",
    title: "Callers of a method",
    about: "The callers of a method as an inverted tree in depth-first order: depth 0 is the \
            method with all its callees, depth 1 its callers, depth 2 their callers. A recursive \
            method counts once, by its outermost call.",
    arguments: || {
        let filters = FILTERS.into_iter().filter(|it| it.name != METHOD.name);
        let filters: Vec<Argument> = filters.collect();
        let own = [FILE, OF, DEPTH, LEAST];
        [&own, &filters[..], &[LIMIT_OF_ROWS, OFFSET]].concat()
    },
    output: || output(&[]),
    answer: callers,
};

fn output(more: &[(&str, Value)]) -> Value {
    let mut row = vec![
        ("depth", integer()),
        ("name", string()),
        ("total", amount_schema()),
    ];
    row.extend_from_slice(more);
    let mut fields = head();
    fields.push(("leftOut", integer()));
    schema(&fields, object(&row))
}

/// A tree with the weights of its nodes.
struct Weighed {
    tree: CallTree,
    own: Vec<Weight>,
}

/// Adds a weight to a node of a tree that grows.
fn add(own: &mut Vec<Weight>, node: NodeId, weight: &Weight) {
    let node = node as usize;
    if own.len() <= node {
        own.resize(node + 1, Weight::default());
    }
    if let Some(sum) = own.get_mut(node) {
        *sum += weight;
    }
}

/// The weights of the merged tree.
fn merged(profile: &Profile, grouped: &Grouped, by_node: &[Weight]) -> Weighed {
    let (tree, to) = merged_tree(profile.tree(), &grouped.of_frame);
    let mut own = vec![Weight::default(); tree.len()];
    for (node, weight) in to.iter().zip(by_node) {
        add(&mut own, *node, weight);
    }
    Weighed { tree, own }
}

/// The calls below a path: parts of the tree that begin where a stack has all methods of the path
/// in their order. They are put together.
fn below(of: &Weighed, path: &[Vec<bool>]) -> Weighed {
    let mut builder = TreeBuilder::default();
    let mut own = Vec::new();
    // By node: methods of the path on its stack, and its node in the result.
    let mut passed: Vec<(usize, NodeId)> = vec![(0, CallTree::ROOT)];
    for node in 1..of.tree.len() {
        let parent = of.tree.parent(node as NodeId) as usize;
        let (count, place) = passed.get(parent).copied().unwrap_or_default();
        let group = of.tree.key(node as NodeId);
        let next = path.get(count);
        let is_next = next.is_some_and(|named| named.get(group as usize) == Some(&true));
        let count = count + usize::from(is_next);
        let place = match count == path.len() {
            true => builder.child(place, group),
            false => CallTree::ROOT,
        };
        passed.push((count, place));
        if place != CallTree::ROOT
            && let Some(weight) = of.own.get(node)
        {
            add(&mut own, place, weight);
        }
    }
    let tree = builder.finish();
    own.resize(tree.len(), Weight::default());
    Weighed { tree, own }
}

/// The inverted tree of the calls that lead to methods, up to a depth.
fn inverted(of: &Weighed, named: &[bool], depth: usize) -> Weighed {
    let is_named = |node: NodeId| named.get(of.tree.key(node) as usize) == Some(&true);
    let totals = of.tree.totals(&of.own);
    let mut builder = TreeBuilder::default();
    let mut own = Vec::new();
    // By node: whether its stack has such a method.
    let mut has = vec![false];
    for node in 1..of.tree.len() {
        let parent = of.tree.parent(node as NodeId) as usize;
        let is_inside = has.get(parent) == Some(&true);
        let is_here = is_named(node as NodeId);
        has.push(is_inside || is_here);
        let total = totals.get(node).copied().unwrap_or_default();
        if is_here && !is_inside && total.samples > 0 {
            let chain = of.tree.stack(node as NodeId).take(depth.saturating_add(1));
            let place = builder.stack(chain);
            add(&mut own, place, &total);
        }
    }
    let tree = builder.finish();
    own.resize(tree.len(), Weight::default());
    Weighed { tree, own }
}

/// A row of a tree.
struct Call {
    node: NodeId,
    depth: usize,
    /// Calls that only lead to it, the innermost first.
    through: Vec<NodeId>,
}

/// The form of a tree's rows.
#[derive(Clone, Copy)]
struct Form {
    /// Calls with a smaller weight are left out.
    least: f64,
    /// Maximum depth.
    depth: usize,
    /// The depth from which on calls that only lead to one other are folded.
    folds_from: usize,
}

/// Calls in depth-first order. Also counts calls that are left out, without those below them.
fn in_order(of: &Weighed, totals: &[Weight], form: Form, names: &[String]) -> (Vec<Call>, usize) {
    let total = |node: NodeId| totals.get(node as usize).map_or(0, |it| it.sum);
    let own = |node: NodeId| of.own.get(node as usize).map_or(0, |it| it.samples);
    let name = |node: NodeId| names.get(of.tree.key(node) as usize);
    let children = |node: NodeId| -> Vec<NodeId> {
        let children = of.tree.children(node).iter().copied();
        children.filter(|node| total(*node) > 0).collect()
    };
    let mut left_out = 0;
    let mut heavy = |node: NodeId, depth: usize| -> Vec<(NodeId, usize)> {
        let mut all = children(node);
        let number = all.len();
        all.retain(|node| depth <= form.depth && total(*node) as f64 >= form.least);
        left_out += number - all.len();
        // The heaviest one is taken first from the end.
        all.sort_by(|a, b| {
            total(*a)
                .cmp(&total(*b))
                .then_with(|| name(*b).cmp(&name(*a)))
        });
        all.into_iter().map(|node| (node, depth)).collect()
    };
    let mut open = heavy(CallTree::ROOT, 0);
    let mut rows = Vec::new();
    while let Some((mut node, depth)) = open.pop() {
        let mut through = Vec::new();
        while depth >= form.folds_from
            && own(node) == 0
            && let [only] = children(node)[..]
        {
            through.push(node);
            node = only;
        }
        through.reverse();
        open.extend(heavy(node, depth + 1));
        rows.push(Call {
            node,
            depth,
            through,
        });
    }
    (rows, left_out)
}

/// Names of calls, the outermost first, of many the innermost ones.
fn names_of(through: &[NodeId], name: impl Fn(NodeId) -> Value) -> Vec<Value> {
    let shown = through.iter().take(THROUGH).rev().map(|node| name(*node));
    let more = through.len().saturating_sub(THROUGH);
    let more = (more > 0).then(|| format!("({more} more)").into());
    more.into_iter().chain(shown).collect()
}

fn tree(recordings: &mut Recordings, arguments: &Arguments) -> Result<Answer, String> {
    let (profile, mut answer) = opened(recordings, arguments, "")?;
    let selection = Selection::new(arguments, &profile, Event::Cpu)?;
    let by = arguments.text(BY.name).unwrap_or("method");
    let grouped = profile.group(match by {
        "class" => GroupBy::Class,
        "package" => GroupBy::Package,
        _ => GroupBy::Method,
    });
    let path = arguments.texts(PATH.name).into_iter().map(|pattern| {
        let named = groups_named(&grouped, pattern);
        match named.contains(&true) {
            true => Ok(named),
            false => Err(unknown("path")),
        }
    });
    let path: Vec<Vec<bool>> = path.collect::<Result<_, _>>()?;
    answer.what = format!("Call tree, {}", selection.words(&profile));
    fill(
        &mut answer,
        (&profile, &selection),
        arguments,
        &grouped,
        // The end of a path is a row.
        usize::from(!path.is_empty()),
        |all, _| match path.is_empty() {
            true => all,
            false => below(&all, &path),
        },
    );
    Ok(answer)
}

fn callers(recordings: &mut Recordings, arguments: &Arguments) -> Result<Answer, String> {
    let (profile, mut answer) = opened(recordings, arguments, "")?;
    // The filter by method would also accept stacks in which it is called later.
    let selection = Selection::new(arguments, &profile, Event::Cpu)?;
    let grouped = profile.group(GroupBy::Method);
    let named = groups_named(&grouped, arguments.text(OF.name).unwrap_or(""));
    if !named.contains(&true) {
        return Err(unknown(OF.name));
    }
    answer.what = format!("Callers, {}", selection.words(&profile));
    let selection = selection.of_all_methods();
    fill(
        &mut answer,
        (&profile, &selection),
        arguments,
        &grouped,
        usize::MAX,
        |all, depth| inverted(&all, &named, depth),
    );
    Ok(answer)
}

fn unknown(argument: &str) -> String {
    format!(
        "{argument}: no such method in the recording; `top` lists methods, and * stands for \
         anything"
    )
}

/// Adds the rows of a tree that `shape` makes of the merged one. Only folded trees have rows with
/// time of their own, because callers have only that of the method.
fn fill(
    answer: &mut Answer,
    (profile, selection): (&Profile, &Selection),
    arguments: &Arguments,
    grouped: &Grouped,
    folds_from: usize,
    shape: impl FnOnce(Weighed, usize) -> Weighed,
) {
    let entries = selection.entries(profile);
    let whole = sum(&entries);
    let unit = selection.unit(profile);
    let number = |name, usual| arguments.number(name).unwrap_or(usual);
    let is_of_calls = folds_from < usize::MAX;
    let usual = if is_of_calls { CALLS } else { CALLERS_OF };
    let depth = arguments.whole(DEPTH.name).unwrap_or(usual) as usize;
    let all = merged(profile, grouped, &by_node(profile, &entries));
    let shaped = shape(all, depth);
    let totals = shaped.tree.totals(&shaped.own);
    let form = Form {
        least: number(LEAST.name, 1.0) / 100.0 * whole.sum as f64,
        depth,
        folds_from,
    };
    let (rows, left_out) = in_order(&shaped, &totals, form, &grouped.names);
    selection.describe(answer, profile, &whole);
    answer.put("leftOut", left_out);
    answer.rows_in_all = rows.len();
    let rows = page(arguments).of(rows).map(|call| {
        let name = |node: NodeId| json!(grouped.names.get(shaped.tree.key(node) as usize));
        let weight = |of: &[Weight]| of.get(call.node as usize).copied().unwrap_or_default();
        let own = weight(&shaped.own);
        let mut row = json!({
            "depth": call.depth,
            "name": name(call.node),
            "total": amount(&weight(&totals), &whole, unit),
        });
        if is_of_calls && own.samples > 0 {
            row["self"] = amount(&own, &whole, unit);
        }
        if !call.through.is_empty() {
            row["through"] = names_of(&call.through, name).into();
        }
        row
    });
    answer.rows = rows.collect();
}
