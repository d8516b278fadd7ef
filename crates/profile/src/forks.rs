//! Where time divides: the methods worth naming among those with a large total.

use std::collections::HashSet;

use crate::aggregate::{GroupBy, merged_tree};
use crate::profile::Profile;

/// Stacks with a smaller share of all time do not make a method one where time divides.
const SHARE_MIN: f64 = 0.005;
/// A method that passes more than this part of its time on to one other does not divide it.
const PASSED_ON_MAX: f64 = 0.95;

impl Profile {
    /// Java methods in which the time divides. A method that does nothing but call the next one
    /// (the run methods of threads, filters, proxies) has the same total as that one and says
    /// nothing.
    pub fn forks(&self) -> HashSet<String> {
        let grouped = self.group(GroupBy::Method);
        let (tree, merged) = merged_tree(&self.tree, &grouped.of_frame);
        let mut own = vec![0u64; tree.len()];
        for (weight, &node) in self.node_weights(|_| true).iter().zip(&merged) {
            if let Some(sum) = own.get_mut(node as usize) {
                *sum = sum.saturating_add(weight.sum);
            }
        }
        let mut totals = own;
        let mut heaviest_child = vec![0u64; tree.len()];
        // Children have larger numbers than their parents.
        for node in (1..tree.len()).rev() {
            let parent = tree.parent(node as u32) as usize;
            let total = totals.get(node).copied().unwrap_or(0);
            if let (Some(above), Some(heaviest)) =
                (totals.get_mut(parent), heaviest_child.get_mut(parent))
            {
                *above = above.saturating_add(total);
                *heaviest = total.max(*heaviest);
            }
        }
        let all = totals.first().copied().unwrap_or(0) as f64;
        let is_java: HashSet<u32> = self
            .frames
            .iter()
            .zip(&grouped.of_frame)
            .filter(|(frame, _)| frame.kind.is_java())
            .map(|(_, &group)| group)
            .collect();
        let divides = |node: &usize| {
            let (total, heaviest) = (totals[*node] as f64, heaviest_child[*node] as f64);
            total >= all * SHARE_MIN && heaviest <= total * PASSED_ON_MAX
        };
        (1..tree.len())
            .filter(divides)
            .map(|node| tree.key(node as u32))
            .filter(|group| is_java.contains(group))
            .filter_map(|group| grouped.names.get(group as usize).cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::text_art;

    #[test]
    fn methods_that_only_pass_time_on_are_left_out_of_totals() {
        let profile = text_art::profile(
            "weight: 60      40      1
                     a.Run.r a.Run.r a.Run.r
                     a.All.s a.All.s -
                     a.A.x   a.B.y   -",
        );
        let found = profile.forks();
        let mut names: Vec<&str> = found.iter().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["a.A.x", "a.All.s", "a.B.y"]);
    }
}
