//! Ids of frames and stacks: hashes of their content, which are the same in every recording.
//!
//! They are signed, because some engines have no unsigned numbers of 64 bits.

use dwell_profile::{CallTree, Frame, Profile, plain};

/// The id of the stack without frames.
pub const NO_STACK: i64 = 0;

/// The ids of a profile's frames and stacks, by their indexes.
pub struct ContentIds {
    /// Of frames: method, line and kind of code.
    pub frames: Vec<i64>,
    /// Of stacks.
    pub stacks: Vec<i64>,
    /// Of the methods of stacks, without lines and kinds of code: equal if only the compilers chose
    /// differently.
    pub paths: Vec<i64>,
}

impl ContentIds {
    /// The ids in a profile.
    pub fn of(profile: &Profile) -> ContentIds {
        let text = |name| plain(profile.names().text(name));
        let method = |it: &dwell_profile::Method| {
            let texts = [it.class, it.name, it.descriptor].map(text);
            hash(texts.iter().map(String::as_bytes))
        };
        let methods: Vec<i64> = profile.methods().iter().map(method).collect();
        let method_of = |frame: &Frame| methods.get(frame.method as usize).copied().unwrap_or(0);
        let of_frame = |frame: &Frame| {
            let (method, kind) = (method_of(frame).to_le_bytes(), frame.kind.label());
            hash([&method, &frame.line.to_le_bytes()[..], kind.as_bytes()].into_iter())
        };
        let frames: Vec<i64> = profile.frames().iter().map(of_frame).collect();
        let by_method: Vec<i64> = profile.frames().iter().map(method_of).collect();
        ContentIds {
            stacks: chained(profile.tree(), &frames),
            paths: chained(profile.tree(), &by_method),
            frames,
        }
    }
}

/// The ids of stacks, by their ends: each from that of its outer part, which lies before it.
fn chained(tree: &CallTree, frames: &[i64]) -> Vec<i64> {
    let mut ids = vec![NO_STACK; tree.len()];
    for node in 1..tree.len() {
        let node = node as u32;
        let outer = ids.get(tree.parent(node) as usize).copied();
        let frame = frames.get(tree.key(node) as usize).copied();
        let parts = [outer, frame].map(|id| id.unwrap_or(0).to_le_bytes());
        if let Some(id) = ids.get_mut(node as usize) {
            *id = hash(parts.iter().map(|part| &part[..]));
        }
    }
    ids
}

/// FNV-1a over the parts with their lengths, then mixed so that all bits depend on all.
fn hash<'a>(parts: impl Iterator<Item = &'a [u8]>) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    let mut sum = BASIS;
    for part in parts {
        sum = (part.len() as u64)
            .to_le_bytes()
            .into_iter()
            .fold(sum, step);
        sum = part.iter().copied().fold(sum, step);
    }
    sum ^= sum >> 33;
    sum = sum.wrapping_mul(0xff51_afd7_ed55_8ccd);
    sum ^= sum >> 33;
    match sum as i64 {
        // Only the empty stack has this one.
        NO_STACK => 1,
        id => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::text_art;
    use std::collections::HashSet;

    /// The stack ids, and the path ids, of the samples.
    fn ids(art: &str) -> Vec<(i64, i64)> {
        let profile = text_art::profile(art);
        let ids = ContentIds::of(&profile);
        let of = |node: u32| (ids.stacks[node as usize], ids.paths[node as usize]);
        profile.samples().iter().map(|it| of(it.node)).collect()
    }

    #[test]
    fn stack_ids_are_those_of_another_recording() {
        let first = ids("a.A.x   a.A.x
                         a.B.y:7 -");
        // Other indexes of names, methods, frames and nodes.
        let second = ids("c.C.z a.A.x   a.A.x
                          c.C.w -       a.B.y:7
                          c.C.v -       -");
        assert_eq!(first, [second[2], second[1]]);
        // They are part of files that exist, and must not change.
        assert_eq!(first[0], PINNED);
    }

    /// The ids of a stack of two frames, as of version 0.1.0.
    const PINNED: (i64, i64) = (-5_598_888_355_225_237_979, -6_756_633_499_240_670_924);

    #[test]
    fn path_ids_ignore_lines_and_compilers() {
        let ids = ids("a.A.x    a.A.x:3      a.A.x
                       a.B.y[c1] a.B.y[c2]   a.B.z");
        let stacks: HashSet<i64> = ids.iter().map(|(stack, _)| *stack).collect();
        assert_eq!(stacks.len(), 3);
        assert_eq!(ids[0].1, ids[1].1);
        assert_ne!(ids[0].1, ids[2].1);
    }

    #[test]
    fn hash_separates_its_parts() {
        let of = |parts: &[&str]| hash(parts.iter().map(|it| it.as_bytes()));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["", "a"]), of(&["a", ""]));
        assert_ne!(of(&[]), NO_STACK);
    }
}
