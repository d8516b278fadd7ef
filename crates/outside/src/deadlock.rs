//! Threads that wait for each other in a circle. Pure: pairs of waiter and owner in, circles out.

use std::collections::HashMap;
use std::hash::Hash;

/// The circles in `waits_for` (each thread waits for at most one other), each once. Threads that
/// wait for a member of a circle without being in it are left out.
#[must_use]
pub fn circles<T: Copy + Eq + Hash + Ord>(waits_for: &HashMap<T, T>) -> Vec<Vec<T>> {
    let mut found: Vec<Vec<T>> = Vec::new();
    let mut seen: HashMap<T, usize> = HashMap::new();
    let mut starts: Vec<T> = waits_for.keys().copied().collect();
    starts.sort_unstable();
    for (turn, start) in starts.into_iter().enumerate() {
        let mut path = Vec::new();
        let mut at = start;
        // Each step enters a new thread, so this ends.
        while !seen.contains_key(&at) {
            seen.insert(at, turn);
            path.push(at);
            match waits_for.get(&at) {
                Some(next) => at = *next,
                None => break,
            }
        }
        if seen.get(&at) == Some(&turn)
            && waits_for.contains_key(&at)
            && let Some(first) = path.iter().position(|member| *member == at)
        {
            found.push(path.split_off(first));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::hash_map;
    use proptest::prelude::*;

    fn of(pairs: &[(u32, u32)]) -> Vec<Vec<u32>> {
        circles(&pairs.iter().copied().collect())
    }

    #[test]
    fn circles_are_found_once_without_their_followers() {
        assert_eq!(of(&[(1, 2), (2, 1)]), [[1, 2]]);
        assert_eq!(of(&[(1, 2), (2, 3)]), Vec::<Vec<u32>>::new());
        assert_eq!(of(&[(0, 1), (1, 2), (2, 3), (3, 1), (9, 2)]), [[1, 2, 3]]);
        assert_eq!(of(&[(1, 2), (2, 1), (3, 4), (4, 3)]).len(), 2);
        assert_eq!(of(&[(5, 5)]), [[5]]);
    }

    proptest! {
        #[test]
        fn members_wait_for_the_next_one(pairs in hash_map(0..20u32, 0..20u32, 0..20)) {
            let found = circles(&pairs);
            let mut members = Vec::new();
            for circle in &found {
                for (i, member) in circle.iter().enumerate() {
                    prop_assert_eq!(pairs[member], circle[(i + 1) % circle.len()]);
                    members.push(*member);
                }
            }
            let count = members.len();
            members.sort_unstable();
            members.dedup();
            prop_assert_eq!(members.len(), count, "no thread is in two circles");
            // A thread that a chain of waits leads back to is in a circle.
            for start in pairs.keys() {
                let mut at = *start;
                for _ in 0..pairs.len() {
                    at = match pairs.get(&at) { Some(next) => *next, None => break };
                    if at == *start {
                        prop_assert!(members.contains(start));
                        break;
                    }
                }
            }
        }
    }
}
