//! Rules of a file that has code without unwind tables, from the code itself: musl's libc is
//! compiled without them. Must not know sections or symbols: ranges of code and entries in, rows
//! out.
//!
//! From each entry of a function, where rsp is 8 below the CFA, the flow of instructions is
//! followed with the distance to the CFA and the place of the caller's rbp. A computed jump goes
//! on behind itself. By the ABI, code that sets rbp to 0 without a copy of it is the outermost
//! frame: musl's `__clone` and `_start` do this.

use std::collections::BTreeSet;

use super::Section;
use super::merge::{Functions, Source};
use super::stack_effect::{Effect, decode};
use dwell_walker::native::{CFA_BYTES_MAX, RBP_SLOT_MAX, Rule, SavedRbp};

/// Maximum bytes of code of a file: twenty times musl's. Above it, the file has no rules.
const CODE_BYTES_MAX: usize = 8 << 20;

/// How often the flow is followed again, with what it has shown of functions.
const ROUNDS_MAX: usize = 8;

/// `syscall`, behind the number of `rt_sigreturn`: the whole signal trampoline.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// The code of a file that has no tables for it.
#[derive(Clone, Debug, Default)]
pub struct Code<'a> {
    /// Executable bytes.
    pub sections: Vec<Section<'a>>,
    /// Addresses (svma) of functions that symbols or pointers name. Calls name others.
    pub entries: Vec<u64>,
}

/// Registers at an instruction, relative to the CFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Bytes from rsp up to the CFA, if known.
    sp: Option<i32>,
    /// Bytes from rbp up to the CFA, if rbp is a frame pointer.
    fp: Option<i32>,
    /// Bytes from the saved rbp up to the CFA, if it is saved.
    saved: Option<i32>,
    is_outermost: bool,
}

impl State {
    const ENTRY: State = State {
        sp: Some(8),
        fp: None,
        saved: None,
        is_outermost: false,
    };

    fn rule(self) -> Rule {
        if self.is_outermost {
            return Rule::End;
        }
        let words = |bytes: i32| u16::try_from(bytes / 8).ok().filter(|_| bytes % 8 == 0);
        let rbp = match self.saved.map(words) {
            None => SavedRbp::Same,
            Some(Some(slot @ 1..=RBP_SLOT_MAX)) => SavedRbp::At(slot),
            Some(_) => return Rule::Unsupported,
        };
        let good = |bytes: i32| {
            let bytes = u32::try_from(bytes).ok()?;
            (bytes % 8 == 0 && bytes <= CFA_BYTES_MAX).then_some(bytes)
        };
        match (self.sp.map(good), self.fp.map(good)) {
            (Some(Some(cfa_bytes)), _) => Rule::Sp { cfa_bytes, rbp },
            (None, Some(Some(cfa_bytes))) => Rule::Fp { cfa_bytes, rbp },
            _ => Rule::Unsupported,
        }
    }

    fn push(&mut self, is_rbp: bool) {
        self.sp = self.sp.and_then(|sp| sp.checked_add(8));
        if is_rbp && self.saved.is_none() {
            self.saved = self.sp;
        }
    }

    fn pop(&mut self, is_rbp: bool) {
        if is_rbp && self.saved.is_some() && self.saved == self.sp {
            (self.saved, self.fp) = (None, None);
        }
        self.sp = self.sp.and_then(|sp| sp.checked_sub(8));
    }

    fn apply(&mut self, effect: Effect) {
        let below = |from: Option<i32>, bytes: i32| from.and_then(|from| from.checked_sub(bytes));
        match effect {
            Effect::Push { is_rbp } => self.push(is_rbp),
            Effect::Pop { is_rbp } => self.pop(is_rbp),
            Effect::MoveSp(bytes) => self.sp = below(self.sp, bytes),
            Effect::LoseSp => self.sp = None,
            Effect::SetFp if self.saved.is_some() => self.fp = self.sp,
            Effect::SpFromFp(bytes) => self.sp = below(self.fp, bytes),
            Effect::Leave => {
                self.sp = self.fp;
                self.pop(true);
            }
            Effect::StoreFp(at) if self.saved.is_none() => self.saved = below(self.sp, at),
            Effect::LoadFp(at) if self.saved.is_some() && self.saved == below(self.sp, at) => {
                (self.saved, self.fp) = (None, None);
            }
            Effect::ClearFp if self.saved.is_none() => self.is_outermost = true,
            _ => {}
        }
    }
}

/// Adds the functions of `code` with their rows; offsets count from `base_svma`.
pub(super) fn collect(code: &Code<'_>, base_svma: u64, functions: &mut Functions) {
    for section in &code.sections {
        let Some(start) = section.svma.checked_sub(base_svma) else {
            continue;
        };
        let end = start.saturating_add(section.data.len() as u64);
        if section.data.len() > CODE_BYTES_MAX || u32::try_from(end).is_err() {
            continue;
        }
        let into = |svma: &u64| usize::try_from(svma.checked_sub(section.svma)?).ok();
        let named = code.entries.iter().filter_map(into);
        let mut flow = Flow::new(section.data, named);
        flow.find_entries();
        for _ in 0..ROUNDS_MAX {
            if !flow.follow() {
                break;
            }
        }
        flow.write(start as u32, functions);
    }
}

/// The flow of instructions in one section. Addresses are indices of its bytes.
struct Flow<'a> {
    data: &'a [u8],
    entries: BTreeSet<usize>,
    /// Entries of functions that do not return.
    endless: BTreeSet<usize>,
    /// The packed rule of each byte; 0, a gap, where no flow leads.
    rules: Vec<u32>,
}

impl<'a> Flow<'a> {
    fn new(data: &'a [u8], named: impl Iterator<Item = usize>) -> Flow<'a> {
        Flow {
            data,
            entries: named.filter(|at| *at < data.len()).collect(),
            endless: BTreeSet::new(),
            rules: vec![0; data.len()],
        }
    }

    /// The index that is `distance` away from `from`, if it is in the section.
    fn target(&self, from: usize, distance: i32) -> Option<usize> {
        let at = from.checked_add_signed(distance as isize)?;
        (at < self.data.len()).then_some(at)
    }

    /// Finds functions that are called, or whose address is taken.
    fn find_entries(&mut self) {
        let mut at = 0;
        while let Some(rest) = self.data.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(instruction) = decode(rest) else {
                at += 1;
                continue;
            };
            let end = at + instruction.len;
            if let Effect::Call(Some(distance)) | Effect::Address(distance) = instruction.effect
                && let Some(target) = self.target(end, distance)
            {
                self.entries.insert(target);
            }
            at = end;
        }
    }

    /// Follows the flow from all entries. True if that has shown more about functions: which do not
    /// return, and which begin behind a call of such a function and are only jumped to.
    fn follow(&mut self) -> bool {
        self.rules.fill(0);
        let known = self.entries.len() + self.endless.len();
        let starts: Vec<usize> = self.entries.iter().copied().collect();
        for start in starts {
            let mut open = vec![(start, State::ENTRY)];
            let mut returns = false;
            while let Some((at, state)) = open.pop() {
                returns |= self.follow_path(at, state, &mut open);
            }
            if !returns {
                self.endless.insert(start);
            }
        }
        self.entries.len() + self.endless.len() > known
    }

    /// Follows the instructions from `at` on, up to known ones. Branches go to `open`. Whether the
    /// function may return there.
    fn follow_path(
        &mut self,
        mut at: usize,
        mut state: State,
        open: &mut Vec<(usize, State)>,
    ) -> bool {
        let start = at;
        while let Some(rest) = self.data.get(at..).filter(|rest| !rest.is_empty()) {
            if self.rules.get(at).is_some_and(|rule| *rule != 0) {
                return !self.endless.contains(&at);
            }
            let Some(instruction) = decode(rest) else {
                return true;
            };
            let end = at + instruction.len;
            if instruction.effect == Effect::LoadSigreturn
                && self
                    .data
                    .get(end..)
                    .is_some_and(|next| next.starts_with(&SYSCALL))
            {
                // A handler returns to its first byte, and is looked up one byte before it.
                self.set(at.saturating_sub(1), end + SYSCALL.len(), Rule::SignalFrame);
                return true;
            }
            self.set(at, end, state.rule());
            state.apply(instruction.effect);
            let next = match instruction.effect {
                Effect::Return => return true,
                Effect::Stop => return false,
                Effect::Jump(distance) => {
                    let Some(target) = self.target(end, distance) else {
                        return true;
                    };
                    self.check_function(target, state);
                    target
                }
                Effect::Branch(distance) => {
                    if let Some(target) = self.target(end, distance) {
                        self.check_function(target, state);
                        open.push((target, state));
                    }
                    end
                }
                Effect::Call(Some(distance)) => {
                    let target = self.target(end, distance);
                    if target.is_some_and(|target| self.endless.contains(&target)) {
                        return false;
                    }
                    end
                }
                _ => end,
            };
            // Behind a call that does not return, another function begins.
            if next == end && next != start && self.entries.contains(&next) {
                return instruction.effect == Effect::JumpAway;
            }
            at = next;
        }
        true
    }

    /// Notes a jump target as a function if the flow came there in another way before.
    fn check_function(&mut self, target: usize, state: State) {
        let rule = self.rules.get(target).copied().unwrap_or(0);
        if state == State::ENTRY && rule != 0 && rule != state.rule().encode() {
            self.entries.insert(target);
        }
    }

    fn set(&mut self, start: usize, end: usize, rule: Rule) {
        let end = end.min(self.rules.len());
        if let Some(rules) = self.rules.get_mut(start..end) {
            rules.fill(rule.encode());
        }
    }

    /// Passes each stretch of code that was followed as a function.
    fn write(&self, offset: u32, functions: &mut Functions) {
        let mut at = 0usize;
        for stretch in self.rules.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
            let start = offset + at as u32;
            at += stretch.len();
            if stretch.first() == Some(&0) {
                continue;
            }
            for (into, rule) in stretch.iter().enumerate() {
                functions.push_row(start + into as u32, Rule::decode(*rule));
            }
            functions.end_function(start, offset + at as u32, Source::Code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_walker::native::lookup;

    const BASE: u32 = 0x1000;

    /// The rule at each of `offsets` in code with one named function, at its beginning.
    #[track_caller]
    fn check(code: &[u8], rules: &[(u32, Rule)]) {
        let section = Section {
            data: code,
            svma: u64::from(BASE),
        };
        let code = Code {
            sections: vec![section],
            entries: vec![u64::from(BASE)],
        };
        let mut functions = Functions::default();
        collect(&code, 0, &mut functions);
        let rows = functions.into_rows();
        for (offset, rule) in rules {
            assert_eq!(lookup(&rows, BASE + offset), *rule, "{offset}: {rows:x?}");
        }
    }

    fn sp(cfa_bytes: u32, slot: u16) -> Rule {
        let rbp = match slot {
            0 => SavedRbp::Same,
            slot => SavedRbp::At(slot),
        };
        Rule::Sp { cfa_bytes, rbp }
    }

    #[test]
    fn pushes_and_pops_move_the_cfa() {
        // push rbx; push rbp; sub rsp, 24; call rax; add rsp, 24; pop rbp; pop rbx; ret
        let code = [
            0x53, 0x55, 0x48, 0x83, 0xec, 24, 0xff, 0xd0, 0x48, 0x83, 0xc4, 24, 0x5d, 0x5b, 0xc3,
        ];
        let rules = [
            (0, sp(8, 0)),
            (1, sp(16, 0)),
            (2, sp(24, 3)),
            (7, sp(48, 3)),
            (12, sp(24, 3)),
            (13, sp(16, 0)),
            (14, sp(8, 0)),
            (15, Rule::Gap),
        ];
        check(&code, &rules);
    }

    #[test]
    fn frame_pointer_counts_where_rsp_is_lost() {
        // push rbp; mov rbp, rsp; and rsp, -32; call rax; leave; ret
        let code = [
            0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0xff, 0xd0, 0xc9, 0xc3,
        ];
        let framed = Rule::Fp {
            cfa_bytes: 16,
            rbp: SavedRbp::At(2),
        };
        check(&code, &[(4, sp(16, 2)), (9, framed), (11, sp(8, 0))]);
        // and rsp, -32; call rax
        check(
            &[0x48, 0x83, 0xe4, 0xe0, 0xff, 0xd0],
            &[(5, Rule::Unsupported)],
        );
    }

    #[test]
    fn branches_are_followed_to_their_own_state() {
        // test eax, eax; jz +2; ret; push rbp; (target:) push rbx; call rax; pop rbx; ret
        let code = [
            0x85, 0xc0, 0x74, 2, 0xc3, 0x55, 0x53, 0xff, 0xd0, 0x5b, 0xc3,
        ];
        check(&code, &[(5, Rule::Gap), (6, sp(8, 0)), (8, sp(16, 0))]);
    }

    #[test]
    fn clearing_an_unsaved_rbp_marks_the_outermost_frame() {
        // xor ebp, ebp; pop rdi; call r9; hlt
        check(
            &[0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0xf4],
            &[(0, sp(8, 0)), (5, Rule::End)],
        );
        // push rbp; xor ebp, ebp; call rax; pop rbp; ret
        check(
            &[0x55, 0x31, 0xed, 0xff, 0xd0, 0x5d, 0xc3],
            &[(4, sp(16, 2))],
        );
    }

    /// The function behind the call is only jumped to, and the one that does not return is known by
    /// its call.
    #[test]
    fn code_behind_an_endless_call_is_another_function() {
        let code = [
            0x53, // 0: push rbx
            0x75, 5, // jnz 8
            0xe8, 10, 0, 0, 0,    // call 18
            0x5b, // 8: pop rbx
            0xeb, 0, // jmp 11
            0x50, 0xff, 0xd0, 0x58, 0xc3, // 11: push rax; call rax; pop rax; ret
            0x90, 0x90, 0xff, 0xd0, 0xf4, // 18: call rax; hlt
        ];
        check(
            &code,
            &[
                (8, sp(16, 0)),
                (11, sp(8, 0)),
                (13, sp(16, 0)),
                (19, sp(8, 0)),
            ],
        );
        let code = [
            0x53, 0x75, 7, // push rbx; jnz 10
            0xe8, 15, 0, 0, 0, // call 23
            0x55, 0xc3, // 8: push rbp; ret, which nothing leads to
            0x5b, 0xc3, // 10: pop rbx; ret
        ];
        let code = [&code[..], &[0x90; 11], &[0xf4]].concat();
        check(&code, &[(8, Rule::Gap), (10, sp(16, 0)), (23, sp(8, 0))]);
    }

    #[test]
    fn signal_trampoline_is_known_from_one_byte_before() {
        let trampoline = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
        // lea rax, [rip + 1]; ret; (target:) the trampoline
        let lead = [0x48, 0x8d, 0x05, 1, 0, 0, 0, 0xc3];
        let code = [&lead[..], &trampoline].concat();
        let signal = Rule::SignalFrame;
        check(
            &code,
            &[(6, sp(8, 0)), (7, signal), (8, signal), (16, signal)],
        );
    }
}
