//! The walk: decodes every reached function once and collects what it may transfer control to.

use crate::graph::image::{Function, Image, Slot};
use crate::graph::rules::Rules;
use anyhow::{Context, Result};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The reached functions and their problems.
#[derive(Debug, Default)]
pub struct Report {
    /// Functions reached, each with the one it was reached from first.
    pub reached: BTreeMap<String, String>,
    /// Imports called.
    pub imports: BTreeSet<String>,
    /// System calls made.
    pub system_calls: BTreeSet<u32>,
    /// Indirect calls and jumps by function.
    pub indirect: BTreeMap<String, usize>,
    /// Why the library must not ship.
    pub problems: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} functions reached", self.reached.len())?;
        for (function, from) in &self.reached {
            writeln!(f, "  {function}  <- {from}")?;
        }
        writeln!(f, "imports: {:?}", self.imports)?;
        writeln!(f, "system calls: {:?}", self.system_calls)?;
        writeln!(f, "indirect calls: {:?}", self.indirect)?;
        for problem in &self.problems {
            writeln!(f, "PROBLEM: {problem}")?;
        }
        let verdict = if self.problems.is_empty() {
            "ok"
        } else {
            "NOT OK"
        };
        writeln!(f, "handler-graph: {verdict}")
    }
}

/// Walks from the roots.
///
/// # Errors
/// A root that does not exist.
pub fn walk(image: &Image, rules: &Rules) -> Result<Report> {
    let mut walk = Walk {
        image,
        rules,
        report: Report::default(),
        queue: Vec::new(),
    };
    for name in &rules.roots {
        let root = image
            .function_named(name)
            .with_context(|| format!("no symbol {name}"))?;
        walk.reach(root, "signal");
    }
    let (head, tails) = rules.root_pattern;
    for function in image.functions() {
        let name = &function.name;
        let plain = !name.contains("::"); // the name is not mangled
        if plain && name.starts_with(head) && tails.iter().any(|tail| name.ends_with(tail)) {
            walk.reach(function, "signal");
        }
    }
    while let Some(function) = walk.queue.pop() {
        walk.decode(function);
    }
    walk.judge();
    Ok(walk.report)
}

struct Walk<'a> {
    image: &'a Image,
    rules: &'a Rules,
    report: Report,
    queue: Vec<&'a Function>,
}

impl<'a> Walk<'a> {
    fn reach(&mut self, function: &'a Function, from: &str) {
        if let Entry::Vacant(entry) = self.report.reached.entry(key(function)) {
            entry.insert(from.to_owned());
            // Calls of a forbidden function do not matter.
            if self.forbidden_word(&function.name).is_none() {
                self.queue.push(function);
            }
        }
    }

    fn forbidden_word(&self, name: &str) -> Option<&'static str> {
        let mut words = self.rules.forbidden.iter();
        words.find(|word| name.contains(**word)).copied()
    }

    fn problem(&mut self, function: &Function, at: u64, what: &str) {
        self.report
            .problems
            .push(format!("{} at {at:#x}: {what}", function.name));
    }

    fn decode(&mut self, function: &'a Function) {
        let options = DecoderOptions::NONE;
        let code: Vec<Instruction> = Decoder::with_ip(64, &function.code, function.start, options)
            .into_iter()
            .collect();
        let mut rax = None;
        for (at, instruction) in code.iter().enumerate() {
            if instruction.is_invalid() {
                self.problem(function, instruction.ip(), "bytes that are no instruction");
                return;
            }
            self.follow(function, instruction, &code[..at], &code);
            self.look_at_data(function, instruction);
            match instruction.mnemonic() {
                Mnemonic::Syscall => self.system_call(function, instruction, rax),
                Mnemonic::Ud2 => self.problem(function, instruction.ip(), "can trap (ud2)"),
                _ => {}
            }
            rax = track_rax(instruction, rax);
        }
    }

    fn system_call(&mut self, function: &Function, instruction: &Instruction, rax: Option<u64>) {
        match rax.and_then(|number| u32::try_from(number).ok()) {
            Some(number) => drop(self.report.system_calls.insert(number)),
            None => self.problem(function, instruction.ip(), "system call of unknown number"),
        }
    }

    /// Calls and jumps that leave the function.
    fn follow(
        &mut self,
        function: &'a Function,
        i: &Instruction,
        before: &[Instruction],
        code: &[Instruction],
    ) {
        match i.flow_control() {
            FlowControl::Call
            | FlowControl::UnconditionalBranch
            | FlowControl::ConditionalBranch
                if i.op0_kind() == OpKind::NearBranch64 =>
            {
                self.go(function, i.ip(), i.near_branch_target());
            }
            FlowControl::IndirectCall | FlowControl::IndirectBranch => {
                if i.is_ip_rel_memory_operand() {
                    self.go_through(function, i.ip(), i.ip_rel_memory_address());
                } else if !is_jump_table(i, before) && !self.is_known_pointer(i, code) {
                    *self
                        .report
                        .indirect
                        .entry(function.name.clone())
                        .or_default() += 1;
                }
            }
            _ => {}
        }
    }

    fn go(&mut self, from: &Function, at: u64, target: u64) {
        if from.contains(target) {
            return;
        }
        if let Some(function) = self.image.function_around(target) {
            self.reach(function, &from.name);
            return;
        }
        // A stub of the procedure linkage table: one jump through a slot.
        let stub = self.image.code_at(target, 16).unwrap_or(&[]);
        let jump = Decoder::with_ip(64, stub, target, DecoderOptions::NONE)
            .into_iter()
            .take(3)
            .find(|i| i.flow_control() == FlowControl::IndirectBranch);
        match jump {
            Some(jump) if jump.is_ip_rel_memory_operand() => {
                self.go_through(from, at, jump.ip_rel_memory_address());
            }
            _ => self.problem(
                from,
                at,
                &format!("goes to {target:#x}, which is no function"),
            ),
        }
    }

    /// A call through a slot that the dynamic linker fills.
    fn go_through(&mut self, from: &Function, at: u64, address: u64) {
        match self.image.slot(address) {
            Some(Slot::Import(name)) => drop(self.report.imports.insert(name.clone())),
            Some(Slot::Internal(target)) => self.go(from, at, *target),
            None => *self.report.indirect.entry(from.name.clone()).or_default() += 1,
        }
    }

    /// `call reg` where all the function ever puts into the register is the address of a function
    /// (which `look_at_data` follows). Only for registers that calls preserve.
    fn is_known_pointer(&self, call: &Instruction, code: &[Instruction]) -> bool {
        let register = call.op0_register();
        let preserved = [
            Register::RBX,
            Register::R12,
            Register::R13,
            Register::R14,
            Register::R15,
        ];
        if call.op0_kind() != OpKind::Register || !preserved.contains(&register) {
            return false;
        }
        let mut factory = InstructionInfoFactory::new();
        let mut writers = code
            .iter()
            .filter(|i| i.mnemonic() != Mnemonic::Pop)
            .filter(|i| {
                factory.info(i).used_registers().iter().any(|used| {
                    used.register().full_register() == register
                        && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
                })
            })
            .peekable();
        writers.peek().is_some()
            && writers.all(|i| {
                let address = i.ip_rel_memory_address();
                i.is_ip_rel_memory_operand()
                    && match i.mnemonic() {
                        Mnemonic::Mov => self.image.slot(address).is_some(),
                        Mnemonic::Lea => self.image.function_at(address).is_some(),
                        _ => false,
                    }
            })
    }

    /// Addresses of functions taken, and thread-local storage touched.
    fn look_at_data(&mut self, function: &'a Function, i: &Instruction) {
        let calls = matches!(
            i.flow_control(),
            FlowControl::IndirectCall | FlowControl::IndirectBranch
        );
        if i.is_ip_rel_memory_operand() && !calls {
            let address = i.ip_rel_memory_address();
            let taken = if i.mnemonic() == Mnemonic::Lea {
                Some(address)
            } else {
                match self.image.slot(address) {
                    Some(Slot::Import(name)) => {
                        self.report.imports.insert(name.clone());
                        None
                    }
                    Some(Slot::Internal(target)) => Some(*target),
                    None => None,
                }
            };
            if let Some(function_taken) = taken.and_then(|at| self.image.function_at(at)) {
                self.reach(function_taken, &function.name);
            }
        }
        let memory = (0..i.op_count()).any(|op| i.op_kind(op) == OpKind::Memory);
        if memory && i.memory_segment() == Register::FS && !is_plain_tls(i) {
            self.problem(function, i.ip(), "touches thread-local storage");
        }
    }

    fn judge(&mut self) {
        let forbidden: Vec<String> = self
            .report
            .reached
            .iter()
            .filter_map(|(name, from)| {
                let word = self.forbidden_word(name)?;
                Some(format!("{name} is reached from {from} ({word})"))
            })
            .collect();
        let (rules, report) = (self.rules, &mut self.report);
        report.problems.extend(forbidden);
        for import in &report.imports {
            if !rules.imports.contains(&import.as_str()) {
                report
                    .problems
                    .push(format!("{import} of another library is reached"));
            }
        }
        for number in &report.system_calls {
            if !rules
                .system_calls
                .iter()
                .any(|(allowed, _)| allowed == number)
            {
                report
                    .problems
                    .push(format!("system call {number} is made"));
            }
        }
        for (name, count) in &report.indirect {
            let allowed = rules
                .indirect
                .iter()
                .find(|(head, _)| name.starts_with(head));
            let most = allowed.map_or(0, |(_, most)| *most);
            if *count > most {
                report
                    .problems
                    .push(format!("{name} makes {count} indirect calls, {most} known"));
            }
        }
        if !self.image.bind_now {
            let problem = "imports are bound lazily: the first call runs the dynamic linker";
            report.problems.push(problem.to_owned());
        }
    }
}

/// The address distinguishes functions of one name (monomorphised).
fn key(function: &Function) -> String {
    format!("{} @{:#x}", function.name, function.start)
}

/// The thread pointer itself, and the C compiler's stack guard.
fn is_plain_tls(i: &Instruction) -> bool {
    let displacement = i.memory_displacement64();
    i.memory_base() == Register::None
        && i.memory_index() == Register::None
        && (displacement == 0 || displacement == 0x28)
}

/// `jmp reg` to an entry of a table of 32-bit offsets: `movsxd reg, [table + 4 * index]` then
/// `add reg, table`. It stays in the function, all of which is decoded anyway.
fn is_jump_table(i: &Instruction, before: &[Instruction]) -> bool {
    // The compiler may put moves of other registers between the sum and the jump.
    const MOVES_MAX: usize = 6;
    let jumps = i.flow_control() == FlowControl::IndirectBranch;
    if !jumps || i.op0_kind() != OpKind::Register {
        return false;
    }
    let register = i.op0_register();
    let moves = before
        .iter()
        .rev()
        .take(MOVES_MAX)
        .take_while(|other| is_move_elsewhere(other, register))
        .count();
    let Some([load, add]) = before
        .get(..before.len() - moves)
        .and_then(|rest| rest.last_chunk::<2>())
    else {
        return false;
    };
    add.mnemonic() == Mnemonic::Add
        && add.op0_register() == register
        && load.mnemonic() == Mnemonic::Movsxd
        && load.memory_index_scale() == 4
}

/// A plain move, or an address taken, that leaves `register` as it is.
fn is_move_elsewhere(i: &Instruction, register: Register) -> bool {
    let to_register = i.op0_kind() == OpKind::Register;
    let is_other = !(to_register && i.op0_register().full_register() == register);
    matches!(i.mnemonic(), Mnemonic::Mov | Mnemonic::Lea) && is_other
}

/// The constant in rax, as far as straight-line code shows it.
fn track_rax(i: &Instruction, before: Option<u64>) -> Option<u64> {
    let writes_rax = i.op_count() > 0
        && i.op0_kind() == OpKind::Register
        && i.op0_register().full_register() == Register::RAX;
    let is_compare = matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
    match i.mnemonic() {
        Mnemonic::Mov if writes_rax => match i.op1_kind() {
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                Some(i.immediate(1))
            }
            _ => None,
        },
        Mnemonic::Xor if writes_rax && i.op1_kind() == OpKind::Register => {
            (i.op0_register() == i.op1_register()).then_some(0)
        }
        Mnemonic::Syscall | Mnemonic::Call => None,
        _ if writes_rax && !is_compare => None,
        _ => before,
    }
}
