//! Sums over a profile: by method, class, package, library or kind of code.
//!
//! Self time belongs to the innermost frame. Total time is counted once a stack: a method that is
//! on a stack five times (recursion) is charged that sample once.

use std::collections::HashMap;

use crate::frame::FrameKind;
use crate::names::Names;
use crate::profile::Profile;
use crate::sample::{Sample, Weight};
use crate::tree::{CallTree, NodeId, TreeBuilder};

/// The key by which frames are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// Class and method name, without descriptor, line or kind.
    Method,
    /// Class, or native library.
    Class,
    /// Package, or native library.
    Package,
    /// The jar, folder or module of the class, if the recording has it. Otherwise `JDK`, the first
    /// two parts of the package, or the native library.
    Library,
    /// Kind of code.
    Kind,
}

/// A mapping of frames to groups.
#[derive(Clone, Debug)]
pub struct Grouped {
    /// The group of each frame, by frame.
    pub of_frame: Vec<u32>,
    /// The name of each group.
    pub names: Vec<String>,
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The group's name.
    pub name: String,
    /// Samples whose innermost frame is in the group.
    pub own: Weight,
    /// Samples that have the group anywhere on their stack, each once.
    pub total: Weight,
}

impl Profile {
    /// The group of every frame.
    pub fn group(&self, by: GroupBy) -> Grouped {
        let mut names = Names::default();
        let mut of_method: HashMap<(u32, FrameKind), u32> = HashMap::new();
        let of_frame = self
            .frames
            .iter()
            .map(|frame| {
                *of_method
                    .entry((frame.method, frame.kind))
                    .or_insert_with(|| {
                        let name = match by {
                            GroupBy::Method => self.method_name(frame.method),
                            GroupBy::Kind => self.kind_label(frame.kind).to_owned(),
                            _ => self.place_of(frame.method, frame.kind, by),
                        };
                        names.intern(&name)
                    })
            })
            .collect();
        Grouped {
            of_frame,
            names: names.iter().map(str::to_owned).collect(),
        }
    }

    fn place_of(&self, method: u32, kind: FrameKind, by: GroupBy) -> String {
        let Some(method) = self.methods.get(method as usize) else {
            return String::new();
        };
        let class = self.names.text(method.class);
        if class.is_empty() {
            return self.names.text(method.name).to_owned();
        }
        // A native method of a Java class has a dotted class; a library has a file's name.
        let in_library = !kind.is_java() && (class.contains(".so") || class.starts_with('['));
        if in_library || by == GroupBy::Class {
            return class.to_owned();
        }
        if let (GroupBy::Library, Some(library)) = (by, method.library) {
            return self.names.text(library).to_owned();
        }
        let package = class
            .rsplit_once('.')
            .map_or("(no package)", |parts| parts.0);
        match by {
            GroupBy::Library => library_of(package),
            _ => package.to_owned(),
        }
    }

    /// The rows of a table over the samples that `keep` accepts, the heaviest own weight first,
    /// then the heaviest total, then by name. Groups without a sample are left out.
    pub fn top(&self, by: GroupBy, keep: impl Fn(&Sample) -> bool) -> Vec<Row> {
        self.rows_of(&self.group(by), &self.node_weights(keep))
    }

    /// The same of any weights, by the node that a stack ends in.
    pub fn rows_of(&self, grouped: &Grouped, own_by_node: &[Weight]) -> Vec<Row> {
        let (own, total) = self.sums(grouped, own_by_node);
        let names = grouped.names.iter().cloned();
        let row = |(name, (own, total))| Row { name, own, total };
        let mut rows: Vec<Row> = names
            .zip(own.into_iter().zip(total))
            .map(row)
            .filter(|row| row.total.samples > 0)
            .collect();
        rows.sort_by(|a, b| {
            (b.own.sum, b.total.sum)
                .cmp(&(a.own.sum, a.total.sum))
                .then_with(|| a.name.cmp(&b.name))
        });
        rows
    }

    pub(crate) fn sums(
        &self,
        grouped: &Grouped,
        own_by_node: &[Weight],
    ) -> (Vec<Weight>, Vec<Weight>) {
        let tree = &self.tree;
        let group = |node: NodeId| grouped.of_frame.get(tree.key(node) as usize).copied();
        let groups = grouped.names.len();
        let (mut own, mut total) = (
            vec![Weight::default(); groups],
            vec![Weight::default(); groups],
        );
        let mut open = vec![0u32; groups];
        let subtree = tree.totals(own_by_node);
        tree.walk(
            |_| {},
            |node, entering| {
                let Some(group) = group(node).map(|group| group as usize) else {
                    return;
                };
                if !entering {
                    open[group] -= 1;
                    return;
                }
                own[group] += &own_by_node[node as usize];
                if open[group] == 0 {
                    total[group] += &subtree[node as usize];
                }
                open[group] += 1;
            },
        );
        (own, total)
    }
}

/// Sorts rows by the heaviest total, then by name.
pub fn sort_by_total(rows: &mut [Row]) {
    rows.sort_by(|a, b| {
        b.total
            .sum
            .cmp(&a.total.sum)
            .then_with(|| a.name.cmp(&b.name))
    });
}

/// The library that a package belongs to by convention, for recordings without origins of classes:
/// the JDK's own prefixes, otherwise the first two parts of the name.
fn library_of(package: &str) -> String {
    let first = package.split('.').next().unwrap_or("");
    if matches!(first, "java" | "javax" | "jdk" | "sun")
        || package.starts_with("com.sun.")
        || package == "com.sun"
    {
        return "JDK".to_owned();
    }
    let end = package
        .match_indices('.')
        .nth(1)
        .map_or(package.len(), |(at, _)| at);
    package.get(..end).unwrap_or(package).to_owned()
}

/// The tree that remains when frames of one group are taken as the same, and for every node of
/// `tree` its node there.
pub fn merged_tree(tree: &CallTree, of_frame: &[u32]) -> (CallTree, Vec<NodeId>) {
    let mut builder = TreeBuilder::default();
    let mut to = vec![CallTree::ROOT; tree.len()];
    for node in 1..tree.len() {
        let parent = to[tree.parent(node as NodeId) as usize];
        let key = tree.key(node as NodeId);
        let group = of_frame
            .get(key as usize)
            .copied()
            .unwrap_or(CallTree::NO_KEY);
        to[node] = builder.child(parent, group);
    }
    (builder.finish(), to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_art;
    use proptest::prelude::*;

    fn rows(profile: &Profile, by: GroupBy) -> Vec<(String, u64, u64)> {
        let row = |row: Row| (row.name, row.own.sum, row.total.sum);
        profile.top(by, |_| true).into_iter().map(row).collect()
    }

    fn row(name: &str, own: u64, total: u64) -> (String, u64, u64) {
        (name.to_owned(), own, total)
    }

    #[test]
    fn total_counts_a_recursive_stack_once() {
        let profile = text_art::profile(
            "weight: 10      1
                     a.A.f:1 a.A.f:1
                     a.A.f:2 a.A.g
                     a.A.f:2 a.A.f[c1]",
        );
        assert_eq!(
            rows(&profile, GroupBy::Method),
            [row("a.A.f", 11, 11), row("a.A.g", 0, 1)]
        );
        assert_eq!(rows(&profile, GroupBy::Class), [row("a.A", 11, 11)]);
    }

    #[test]
    fn groups_by_package_library_and_kind() {
        let mut profile = text_art::profile(
            "weight: 1 2 4 8
             java.util.HashMap.put      org.spring.web.X.run[inlined]  T.main  [kernel].read[kernel]
             libjvm.so.Arena::grow[vm]      org.spring.core.Y.go           -         -",
        );
        assert_eq!(
            rows(&profile, GroupBy::Package),
            [
                row("[kernel]", 8, 8),
                row("(no package)", 4, 4),
                row("org.spring.core", 2, 2),
                row("libjvm.so", 1, 1),
                row("org.spring.web", 0, 2),
                row("java.util", 0, 1),
            ]
        );
        let libraries = rows(&profile, GroupBy::Library);
        assert!(
            libraries.contains(&row("org.spring", 2, 2)),
            "{libraries:?}"
        );
        assert!(libraries.contains(&row("JDK", 0, 1)), "{libraries:?}");
        let kinds = rows(&profile, GroupBy::Kind);
        assert!(kinds.contains(&row("inlined", 0, 2)), "{kinds:?}");
        assert!(kinds.contains(&row("C2", 6, 7)), "{kinds:?}");
        profile.info.jvm_name = "Mono".to_owned();
        let kinds = rows(&profile, GroupBy::Kind);
        assert!(kinds.contains(&row("JIT", 6, 7)), "{kinds:?}");
    }

    #[test]
    fn only_kept_samples_count() {
        let profile = text_art::profile("thread: a b\nweight: 3 4\nx.X.x x.X.y");
        let rows = profile.top(GroupBy::Method, |sample| sample.thread == 1);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].name.as_str(), rows[0].own.sum), ("x.X.y", 4));
    }

    #[test]
    fn libraries_by_convention() {
        for (package, library) in [
            ("java.lang", "JDK"),
            ("com.sun.proxy", "JDK"),
            ("com.sunshine.app", "com.sunshine"),
            ("io.netty.channel.nio", "io.netty"),
            ("single", "single"),
            ("(no package)", "(no package)"),
        ] {
            assert_eq!(library_of(package), library);
        }
    }

    #[test]
    fn merging_keeps_the_shape() {
        let profile = text_art::profile(
            "a.A.f:1 a.A.f:2 a.A.f:2
             a.A.g   a.A.g   a.A.h",
        );
        let grouped = profile.group(GroupBy::Method);
        let (tree, to) = merged_tree(profile.tree(), &grouped.of_frame);
        assert_eq!((profile.tree().len(), tree.len()), (6, 4));
        let ends: Vec<_> = profile
            .samples()
            .iter()
            .map(|s| to[s.node as usize])
            .collect();
        assert_eq!(ends[0], ends[1]);
        assert_ne!(ends[0], ends[2]);
    }

    proptest! {
        /// Against the definition, sample by sample.
        #[test]
        fn agrees_with_counting_sample_by_sample(
            stacks in prop::collection::vec(
                (prop::collection::vec(0u8..5, 0..8), 0u64..1000), 0..40),
        ) {
            let mut builder = crate::Builder::default();
            let thread = builder.thread("t", 1, 1, false);
            let mut own = HashMap::new();
            let mut total = HashMap::new();
            for (stack, weight) in &stacks {
                let mut frames = Vec::new();
                for method in stack {
                    let id = builder.method("c", &format!("m{method}"), "");
                    frames.push(builder.frame(id, 0, FrameKind::C2));
                }
                let node = builder.stack(frames);
                let weight = *weight;
                let (failure, context) = (None, None);
                let (time_ns, count) = (0, 1);
                builder.sample(Sample { time_ns, thread, node, weight, count, failure, context });
                if let Some(leaf) = stack.last() {
                    *own.entry(*leaf).or_insert(0) += weight;
                }
                let distinct: std::collections::BTreeSet<_> = stack.iter().copied().collect();
                for method in distinct {
                    *total.entry(method).or_insert(0) += weight;
                }
            }
            let rows = builder.finish().top(GroupBy::Method, |_| true);
            prop_assert_eq!(rows.len(), total.len());
            for row in rows {
                let method: u8 = row.name.trim_start_matches("c.m").parse().unwrap();
                prop_assert_eq!(row.own.sum, own.get(&method).copied().unwrap_or(0));
                prop_assert_eq!(row.total.sum, total[&method]);
            }
        }
    }
}
