//! The file format: one fact a line, words in hexadecimal. Readable, diffable, versioned.

use crate::{Frozen, NativePc, Registers, extra_values, set_extra};
use dwell_walker::hotspot::codecache::CODE_CACHE_WORDS;
use dwell_walker::hotspot::layout::{ABSENT, Layout};
use dwell_walker::machine::x86_64;
use dwell_walker::{Frame, FrameKind, ThreadContext};
use std::collections::BTreeMap;
use std::fmt::Write;

const MAGIC: &str = "dwell-frozen-walk 2";

/// A line that the parser does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ParseError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The error.
    pub reason: &'static str,
}

const KINDS: [(FrameKind, &str); 11] = [
    (FrameKind::Interpreted, "interpreted"),
    (FrameKind::C1, "c1"),
    (FrameKind::C2, "c2"),
    (FrameKind::Ahead, "ahead"),
    (FrameKind::Inlined, "inlined"),
    (FrameKind::ManagedNative, "java_native"),
    (FrameKind::Native, "native"),
    (FrameKind::Vm, "vm"),
    (FrameKind::Kernel, "kernel"),
    (FrameKind::Stub, "stub"),
    (FrameKind::Failed, "failed"),
];

fn kind_name(kind: FrameKind) -> &'static str {
    KINDS
        .iter()
        .find(|(k, _)| *k == kind)
        .map_or("failed", |(_, name)| name)
}

impl Frozen {
    /// The walk as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = format!(
            "{MAGIC}\norigin {}\n",
            self.origin.replace(char::is_control, " ")
        );
        let mut put = |line: std::fmt::Arguments<'_>| {
            // Writing to a String cannot fail.
            let _ = out.write_fmt(line);
            out.push('\n');
        };
        self.layout.for_each(|name, value| {
            if value != ABSENT {
                put(format_args!("layout {name} {value:x}"));
            }
        });
        for (name, value) in extra_values(&self.layout.extra) {
            put(format_args!("extra {name} {value:x}"));
        }
        for (i, word) in self.code.iter().enumerate().filter(|(_, w)| **w != 0) {
            put(format_args!("code {i} {word:x}"));
        }
        put(format_args!("machine {}", self.regs.machine()));
        let values = self.regs.values();
        let values: Vec<String> = values.iter().map(|value| format!("{value:x}")).collect();
        put(format_args!("regs {}", values.join(" ")));
        let t = &self.thread;
        let a = &t.anchor;
        let cut = u64::from(t.cut);
        put(format_args!(
            "thread {:x} {:x} {:x} {:x} {cut:x} {:x} {:x}",
            a.sp, a.pc, a.fp, t.stack_high, t.cont_entry, t.chunk
        ));
        put(format_args!("poll {:x}", t.poll_pc));
        for (addr, word) in &self.words {
            match word {
                Some(word) => put(format_args!("word {addr:x} {word:x}")),
                None => put(format_args!("fault {addr:x}")),
            }
        }
        for (pc, native) in &self.native {
            let vm = u64::from(native.is_vm);
            match native.rule {
                Some(rule) => put(format_args!("native {pc:x} {vm:x} {rule:x}")),
                None => put(format_args!("native {pc:x} {vm:x}")),
            }
        }
        for frame in &self.frames {
            put(format_args!(
                "frame {} {} {:x}",
                kind_name(frame.kind),
                frame.bci,
                frame.id
            ));
        }
        let outcome = self.outcome.replace(char::is_control, " ");
        put(format_args!("outcome {outcome}"));
        out
    }

    /// Parses the output of [`Frozen::to_text`].
    ///
    /// # Errors
    /// [`ParseError`] with the line that is not accepted.
    pub fn parse(text: &str) -> Result<Frozen, ParseError> {
        let mut lines = text.lines().enumerate();
        let magic = lines.next().map(|(_, line)| line);
        if magic != Some(MAGIC) {
            return Err(ParseError {
                line: 1,
                reason: "not a frozen walk of this version",
            });
        }
        let mut frozen = Frozen {
            origin: String::new(),
            layout: Layout::EMPTY,
            code: [0; CODE_CACHE_WORDS],
            // Files of older versions name no machine.
            regs: x86_64::Regs::default().into(),
            thread: ThreadContext::default(),
            words: BTreeMap::new(),
            native: BTreeMap::new(),
            frames: Vec::new(),
            outcome: String::new(),
        };
        for (index, line) in lines {
            let (tag, rest) = line.split_once(' ').unwrap_or((line, ""));
            frozen.take(tag, rest).map_err(|reason| ParseError {
                line: index + 1,
                reason,
            })?;
        }
        Ok(frozen)
    }

    fn take(&mut self, tag: &str, rest: &str) -> Result<(), &'static str> {
        match tag {
            "origin" => self.origin = rest.to_owned(),
            "outcome" => self.outcome = rest.to_owned(),
            "layout" | "extra" => {
                let (name, value) = rest.split_once(' ').ok_or("a name and a value")?;
                let value = hex(value)?;
                let known = match tag {
                    "layout" => self.layout.set(name, value),
                    _ => set_extra(&mut self.layout.extra, name, value),
                };
                return known.then_some(()).ok_or("unknown name");
            }
            "code" => {
                let (index, value) = rest.split_once(' ').ok_or("an index and a value")?;
                let index: usize = index.parse().map_err(|_| "an index")?;
                *self.code.get_mut(index).ok_or("index out of range")? = hex(value)?;
            }
            "regs" => {
                let values: Result<Vec<u64>, _> = rest.split(' ').map(hex).collect();
                let fits = self.regs.set(&values?);
                return fits.then_some(()).ok_or("the registers of the machine");
            }
            "machine" => {
                if self.regs.values().iter().any(|value| *value != 0) {
                    return Err("the machine before its registers");
                }
                self.regs = Registers::of_machine(rest).ok_or("unknown machine")?;
            }
            "thread" => {
                let [sp, pc, fp, stack_high, cut, cont_entry, chunk] = words(rest)?;
                self.thread = ThreadContext {
                    anchor: dwell_walker::Anchor { sp, pc, fp },
                    stack_high,
                    cut: cut != 0,
                    cont_entry,
                    chunk,
                    poll_pc: self.thread.poll_pc,
                };
            }
            "poll" => self.thread.poll_pc = hex(rest)?,
            "word" => {
                let [addr, word] = words(rest)?;
                self.words.insert(addr, Some(word));
            }
            "fault" => {
                self.words.insert(hex(rest)?, None);
            }
            "native" => self.take_native(rest)?,
            "frame" => self.frames.push(frame(rest)?),
            _ => return Err("unknown line"),
        }
        Ok(())
    }

    fn take_native(&mut self, rest: &str) -> Result<(), &'static str> {
        let mut parts = rest.split(' ');
        let mut next = || parts.next().map(hex);
        let pc = next().ok_or("an address")??;
        let is_vm = next().ok_or("a flag")?? != 0;
        let rule = next().transpose()?;
        let rule = rule
            .map(u32::try_from)
            .transpose()
            .map_err(|_| "a rule of 32 bits")?;
        self.native.insert(pc, NativePc { rule, is_vm });
        Ok(())
    }
}

fn hex(text: &str) -> Result<u64, &'static str> {
    u64::from_str_radix(text, 16).map_err(|_| "a hexadecimal number")
}

fn words<const N: usize>(text: &str) -> Result<[u64; N], &'static str> {
    let mut out = [0; N];
    let mut parts = text.split(' ');
    for slot in &mut out {
        *slot = hex(parts.next().ok_or("too few numbers")?)?;
    }
    match parts.next() {
        None => Ok(out),
        Some(_) => Err("too many numbers"),
    }
}

fn frame(text: &str) -> Result<Frame, &'static str> {
    let mut parts = text.split(' ');
    let kind = parts.next().unwrap_or("");
    let (kind, _) = *KINDS
        .iter()
        .find(|(_, name)| *name == kind)
        .ok_or("unknown kind")?;
    let bci = parts
        .next()
        .and_then(|b| b.parse().ok())
        .ok_or("a bytecode index")?;
    let id = hex(parts.next().ok_or("an id")?)?;
    Ok(Frame { kind, bci, id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_walker::machine::aarch64;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,300}") {
            let _ = Frozen::parse(&text);
            let _ = Frozen::parse(&format!("{MAGIC}\n{text}"));
        }

        #[test]
        fn every_walk_round_trips(
            seed in any::<[u64; 8]>(),
            words in proptest::collection::btree_map(any::<u64>(), any::<Option<u64>>(), 0..20),
            bci in any::<i32>(),
        ) {
            let mut frozen = Frozen::parse(MAGIC).unwrap();
            let [pc, sp, fp, rax, rbx, r13, rcx, rdx] = seed;
            frozen.regs = x86_64::Regs { pc, sp, fp, rax, rbx, rcx, rdx, r13 }.into();
            if r13 % 2 == 0 {
                let (lr, x12, x13) = (rax, rbx, rcx);
                let (x19, x20, x22) = (rdx, r13, !pc);
                frozen.regs = aarch64::Regs { pc, sp, fp, lr, x12, x13, x19, x20, x22 }.into();
            }
            frozen.thread.anchor.sp = pc;
            frozen.thread.cut = rax % 2 == 0;
            frozen.layout.thread_state = sp;
            frozen.layout.extra.interpreter_bcp = -64;
            frozen.code[3] = fp;
            frozen.words = words;
            frozen.native.insert(pc, NativePc { rule: Some(sp as u32), is_vm: true });
            frozen.native.insert(sp, NativePc { rule: None, is_vm: false });
            frozen.frames.push(Frame { kind: FrameKind::C2, bci, id: fp });
            frozen.outcome = "complete".into();
            prop_assert_eq!(Frozen::parse(&frozen.to_text()).unwrap(), frozen);
        }
    }

    #[test]
    fn file_without_machine_is_of_x86_64() {
        let of = |lines: &str| Frozen::parse(&format!("{MAGIC}\n{lines}")).map(|it| it.regs);
        let old = of("regs 1 2 3 4 5 6");
        let expected = x86_64::Regs {
            pc: 1,
            sp: 2,
            fp: 3,
            rax: 4,
            rbx: 5,
            r13: 6,
            ..x86_64::Regs::default()
        };
        assert_eq!(old, Ok(expected.into()));
        assert_eq!(of("machine x86-64\nregs 1 2 3 4 5 6 0 0"), old);
        let arm = of("machine aarch64\nregs 1 2 3 4 5 6 7 8 9").unwrap();
        assert_eq!((arm.machine(), arm.start().fp), ("aarch64", 3));
        for (lines, line) in [
            ("machine riscv64", 2),
            ("machine aarch64\nregs 1 2 3 4 5 6 7 8", 3),
            ("regs 1 2 3 4 5 6 7", 2),
            ("regs 1 2 3 4 5 6 7 8\nmachine aarch64", 3),
        ] {
            assert_eq!(of(lines).map_err(|error| error.line), Err(line), "{lines}");
        }
    }
}
