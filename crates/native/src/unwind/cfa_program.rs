//! Interprets one FDE's call frame program for the three columns that matter: CFA, frame pointer,
//! return address. It tracks the stack pointer only to verify that no instruction redefines it. The
//! names are those of x86-64; a CIE's return address column names the processor.
//!
//! It must not know about sections or tables: instructions in, `(address, Rule)` out.

use dwell_walker::native::{CFA_BYTES_MAX, RBP_SLOT_MAX, Rule, SavedRbp};
use gimli::{CallFrameInstruction, EndianSlice, LittleEndian, Register, UnwindSection};

use super::Error;

pub(super) type Reader<'a> = EndianSlice<'a, LittleEndian>;

const RSP: Register = gimli::X86_64::RSP;

/// A processor's registers. On aarch64 the return address is a register of its own (x30), and a
/// frame begins with no words on the stack (DWARF for the Arm 64-bit Architecture, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registers {
    X86_64,
    Aarch64,
}

/// Whether libraries of aarch64 have rules. An agent for x86-64 meets none, and is smaller without.
/// The tests of a debug build have them on each machine.
const HAS_AARCH64: bool = cfg!(any(target_arch = "aarch64", debug_assertions));

impl Registers {
    /// The processor with this column for return addresses. Any other is treated like x86-64, whose
    /// rules then find none.
    pub(super) fn of_return_address(register: Register) -> Registers {
        match register {
            gimli::AArch64::X30 if HAS_AARCH64 => Registers::Aarch64,
            _ => Registers::X86_64,
        }
    }

    const fn is_aarch64(self) -> bool {
        HAS_AARCH64 && matches!(self, Registers::Aarch64)
    }

    const fn fp(self) -> Register {
        match self.is_aarch64() {
            false => gimli::X86_64::RBP,
            true => gimli::AArch64::X29,
        }
    }

    const fn sp(self) -> Register {
        match self.is_aarch64() {
            false => RSP,
            true => gimli::AArch64::SP,
        }
    }

    const fn return_address(self) -> Register {
        match self.is_aarch64() {
            false => gimli::X86_64::RA,
            true => gimli::AArch64::X30,
        }
    }
}

/// Maximum supported nesting of `DW_CFA_remember_state`; compilers use one or two.
const REMEMBERED_MAX: usize = 32;

/// Maximum length of an FDE, in bytes, that is looked up without a table ([`super::direct`]). The
/// longest known FDE has a tenth of this.
pub(super) const FDE_LEN_MAX: usize = 1 << 16;

/// A PLT of more bytes than this is not expanded into rows.
pub(super) const PLT_LEN_MAX: u64 = 1 << 20;

/// `rsp + 8 + ((rip & 15) >= N) * 8`, up to the operand `N`, as linkers write it for `.plt`:
/// breg7 8, breg16 0, lit15, and, then `litN`, ge, lit3, shl, plus.
const PLT_EXPRESSION: ([u8; 6], [u8; 4]) =
    ([0x77, 8, 0x80, 0, 0x3f, 0x1a], [0x2a, 0x33, 0x24, 0x22]);
const DW_OP_LIT0: u8 = 0x30;
/// `*(rsp + 160)`: rsp in the `ucontext` that the kernel left at rsp of a signal trampoline.
const SIGNAL_EXPRESSION: [u8; 4] = [0x77, 0xa0, 0x01, 0x06];

/// Steps left before an input counts as hostile.
pub(super) struct Budget(u64);

impl Budget {
    pub(super) fn for_len(len: usize) -> Budget {
        Budget((len as u64).saturating_mul(4).saturating_add(1 << 16))
    }

    pub(super) fn spend(&mut self, steps: u64) -> Result<(), Error> {
        self.0 = self.0.checked_sub(steps).ok_or(Error::TooComplex)?;
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cfa {
    Register(Register, i64),
    Plt { threshold: u8 },
    Signal,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saved {
    Unset,
    Same,
    Undefined,
    AtCfa(i64),
    Other,
}

/// The columns of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    cfa: Cfa,
    rbp: Saved,
    rsp: Saved,
    return_address: Saved,
}

impl State {
    /// The state before a CIE's initial instructions.
    pub(super) const EMPTY: State = State {
        cfa: Cfa::Other,
        rbp: Saved::Unset,
        rsp: Saved::Unset,
        return_address: Saved::Unset,
    };

    /// The state after the initial instructions that compilers write: the CFA is `rsp + 8`, the
    /// return address right below it.
    pub(super) const USUAL: State = State {
        cfa: Cfa::Register(RSP, 8),
        rbp: Saved::Unset,
        rsp: Saved::Unset,
        return_address: Saved::AtCfa(-8),
    };

    fn column(&mut self, registers: Registers, register: Register) -> Option<&mut Saved> {
        if register == registers.fp() {
            return Some(&mut self.rbp);
        }
        if register == registers.sp() {
            return Some(&mut self.rsp);
        }
        let is_return_address = register == registers.return_address();
        is_return_address.then_some(&mut self.return_address)
    }

    /// The row's rule; `Err` with the threshold for a PLT whose threshold is not the common one.
    pub(super) fn rule(&self, factors: &Factors) -> Result<Rule, u8> {
        if self.return_address == Saved::Undefined {
            return Ok(Rule::End);
        }
        if factors.registers.is_aarch64() {
            return Ok(self.rule_of_aarch64(factors.is_signal));
        }
        if self.cfa == Cfa::Signal && factors.is_signal {
            return Ok(Rule::SignalFrame);
        }
        if self.return_address != Saved::AtCfa(-8) || self.rsp != Saved::Unset {
            return Ok(Rule::Unsupported);
        }
        let Some(rbp) = saved_rbp(self.rbp) else {
            return Ok(Rule::Unsupported);
        };
        match self.cfa {
            Cfa::Register(RSP, offset) => {
                Ok(cfa_rule(offset, |cfa_bytes| Rule::Sp { cfa_bytes, rbp }))
            }
            Cfa::Register(gimli::X86_64::RBP, offset) => {
                Ok(cfa_rule(offset, |cfa_bytes| Rule::Fp { cfa_bytes, rbp }))
            }
            Cfa::Plt { threshold: 11 } if rbp == SavedRbp::Same => Ok(Rule::Plt),
            Cfa::Plt { threshold } if rbp == SavedRbp::Same => Err(threshold),
            _ => Ok(Rule::Unsupported),
        }
    }
}

impl State {
    /// A packed rule has one slot, so that it can express three forms: the frame pointer and the
    /// return address are both unchanged, or both saved, the return address above the other, or
    /// only the return address is saved.
    fn rule_of_aarch64(&self, is_signal: bool) -> Rule {
        if is_signal {
            return Rule::SignalFrame;
        }
        let (rbp, is_link) = match (saved_rbp(self.rbp), saved_rbp(self.return_address)) {
            (Some(SavedRbp::Same), Some(link)) => (link, link != SavedRbp::Same),
            (Some(rbp @ SavedRbp::At(fp)), Some(SavedRbp::At(link))) if fp - 1 == link => {
                (rbp, false)
            }
            _ => return Rule::Unsupported,
        };
        let slot = match rbp {
            SavedRbp::Same => 0,
            SavedRbp::At(slot) => slot,
        };
        match self.cfa {
            _ if self.rsp != Saved::Unset => Rule::Unsupported,
            Cfa::Register(gimli::AArch64::SP, offset) => cfa_rule(offset, |cfa_bytes| {
                if is_link {
                    Rule::Link { cfa_bytes, slot }
                } else if slot > RBP_SLOT_MAX && u32::from(slot) * 8 == cfa_bytes {
                    Rule::Link { cfa_bytes, slot: 0 }
                } else {
                    Rule::Sp { cfa_bytes, rbp }
                }
            }),
            Cfa::Register(gimli::AArch64::X29, offset) if !is_link => {
                cfa_rule(offset, |cfa_bytes| Rule::Fp { cfa_bytes, rbp })
            }
            _ => Rule::Unsupported,
        }
    }
}

fn cfa_rule(offset: i64, make: impl FnOnce(u32) -> Rule) -> Rule {
    match u32::try_from(offset) {
        // `encode` checks alignment and range; decoding shows the result.
        Ok(cfa_bytes) if cfa_bytes <= CFA_BYTES_MAX => Rule::decode(make(cfa_bytes).encode()),
        _ => Rule::Unsupported,
    }
}

/// An undefined rbp (the outermost frames) is treated as unchanged: these frames do not use it.
fn saved_rbp(saved: Saved) -> Option<SavedRbp> {
    match saved {
        Saved::Unset | Saved::Same | Saved::Undefined => Some(SavedRbp::Same),
        Saved::AtCfa(offset) => {
            let below = offset
                .checked_neg()
                .filter(|below| *below > 0 && below % 8 == 0)?;
            u16::try_from(below / 8).ok().map(SavedRbp::At)
        }
        Saved::Other => None,
    }
}

/// The value of the expression of an instruction, if it defines the CFA by one.
fn computed<'a, S: UnwindSection<Reader<'a>>>(
    section: &S,
    instruction: &CallFrameInstruction<usize>,
) -> Cfa {
    let CallFrameInstruction::DefCfaExpression { expression } = instruction else {
        return Cfa::Other;
    };
    let bytes = expression.get(section).map(|it| it.0.slice());
    bytes.map_or(Cfa::Other, classify)
}

/// Maximum length of an expression in [`classify`], in bytes.
pub(super) const EXPRESSION_LEN_MAX: usize = PLT_EXPRESSION.0.len() + 1 + PLT_EXPRESSION.1.len();

/// The value that an expression with these bytes computes.
pub(super) fn classify(bytes: &[u8]) -> Cfa {
    if *bytes == SIGNAL_EXPRESSION {
        return Cfa::Signal;
    }
    let (before, after) = PLT_EXPRESSION;
    let operand = bytes
        .strip_prefix(&before)
        .and_then(|rest| rest.strip_suffix(&after));
    match operand {
        Some([literal]) => match literal.checked_sub(DW_OP_LIT0) {
            Some(threshold @ 1..=15) => Cfa::Plt { threshold },
            _ => Cfa::Other,
        },
        _ => Cfa::Other,
    }
}

/// Effect of one instruction on the machine.
pub(super) enum Effect {
    /// The row's columns, or nothing.
    Columns,
    /// A new row begins at the address.
    Row(u64),
}

/// The part of a CIE that its FDEs need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Factors {
    pub(super) code: u64,
    pub(super) data: i64,
    pub(super) is_signal: bool,
    pub(super) registers: Registers,
}

impl Factors {
    /// The factors that compilers write.
    pub(super) const USUAL: Factors = Factors {
        code: 1,
        data: -8,
        is_signal: false,
        registers: Registers::X86_64,
    };
}

/// The interpreter of one program. Neither allocates nor panics.
pub(super) struct Machine {
    factors: Factors,
    initial: State,
    pub(super) state: State,
    remembered: [State; REMEMBERED_MAX],
    depth: usize,
    address: u64,
}

/// The program is invalid from here on.
pub(super) struct Nonsense;

impl Machine {
    /// A machine that has run a CIE's initial instructions; `initial` is the resulting state.
    pub(super) fn new(factors: Factors, initial: State, start: u64) -> Machine {
        Machine {
            factors,
            initial,
            state: initial,
            remembered: [State::EMPTY; REMEMBERED_MAX],
            depth: 0,
            address: start,
        }
    }

    /// Begins with a function, after a CIE's initial instructions.
    pub(super) fn begin(&mut self, start: u64) {
        self.initial = self.state;
        self.depth = 0;
        self.address = start;
    }

    fn factored(&self, offset: i64) -> Result<i64, Nonsense> {
        offset.checked_mul(self.factors.data).ok_or(Nonsense)
    }

    fn factored_unsigned(&self, offset: u64) -> Result<i64, Nonsense> {
        self.factored(i64::try_from(offset).map_err(|_| Nonsense)?)
    }

    fn set(&mut self, register: Register, saved: Saved) {
        if let Some(column) = self.state.column(self.factors.registers, register) {
            *column = saved;
        }
    }

    fn set_cfa_offset(&mut self, offset: i64) -> Result<(), Nonsense> {
        let Cfa::Register(register, _) = self.state.cfa else {
            return Err(Nonsense);
        };
        self.state.cfa = Cfa::Register(register, offset);
        Ok(())
    }

    /// Executes an instruction. If it defines the CFA by an expression, `computed` is the value of
    /// that expression.
    pub(super) fn execute(
        &mut self,
        instruction: &CallFrameInstruction<usize>,
        computed: Cfa,
    ) -> Result<Effect, Nonsense> {
        use CallFrameInstruction as I;
        match *instruction {
            I::SetLoc { address } => return self.advance_to(address),
            I::AdvanceLoc { delta } => {
                let bytes = u64::from(delta)
                    .checked_mul(self.factors.code)
                    .ok_or(Nonsense)?;
                return self.advance_to(self.address.checked_add(bytes).ok_or(Nonsense)?);
            }
            I::DefCfa { .. }
            | I::DefCfaSf { .. }
            | I::DefCfaRegister { .. }
            | I::DefCfaOffset { .. }
            | I::DefCfaOffsetSf { .. } => self.define_cfa(instruction)?,
            I::DefCfaExpression { .. } => self.state.cfa = computed,
            I::RememberState => {
                let place = self.remembered.get_mut(self.depth).ok_or(Nonsense)?;
                *place = self.state;
                self.depth += 1;
            }
            I::RestoreState => {
                self.depth = self.depth.checked_sub(1).ok_or(Nonsense)?;
                self.state = *self.remembered.get(self.depth).ok_or(Nonsense)?;
            }
            I::ArgsSize { .. } | I::Nop => {}
            // From here on the return address is signed, or no longer: the walker removes any
            // signature.
            I::NegateRaState if self.factors.registers.is_aarch64() => {}
            I::NegateRaState => return Err(Nonsense),
            _ => self.define_register(instruction)?,
        }
        Ok(Effect::Columns)
    }

    fn advance_to(&mut self, address: u64) -> Result<Effect, Nonsense> {
        if address < self.address {
            return Err(Nonsense);
        }
        self.address = address;
        Ok(Effect::Row(address))
    }

    fn define_cfa(&mut self, instruction: &CallFrameInstruction<usize>) -> Result<(), Nonsense> {
        use CallFrameInstruction as I;
        match *instruction {
            I::DefCfa { register, offset } => {
                let offset = i64::try_from(offset).map_err(|_| Nonsense)?;
                self.state.cfa = Cfa::Register(register, offset);
            }
            I::DefCfaSf {
                register,
                factored_offset,
            } => {
                self.state.cfa = Cfa::Register(register, self.factored(factored_offset)?);
            }
            I::DefCfaRegister { register } => {
                let Cfa::Register(_, offset) = self.state.cfa else {
                    return Err(Nonsense);
                };
                self.state.cfa = Cfa::Register(register, offset);
            }
            I::DefCfaOffset { offset } => {
                self.set_cfa_offset(i64::try_from(offset).map_err(|_| Nonsense)?)?;
            }
            I::DefCfaOffsetSf { factored_offset } => {
                self.set_cfa_offset(self.factored(factored_offset)?)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn define_register(
        &mut self,
        instruction: &CallFrameInstruction<usize>,
    ) -> Result<(), Nonsense> {
        use CallFrameInstruction as I;
        match *instruction {
            I::Undefined { register } => self.set(register, Saved::Undefined),
            I::SameValue { register } => self.set(register, Saved::Same),
            I::Offset {
                register,
                factored_offset,
            } => {
                let offset = self.factored_unsigned(factored_offset)?;
                self.set(register, Saved::AtCfa(offset));
            }
            I::OffsetExtendedSf {
                register,
                factored_offset,
            } => {
                let offset = self.factored(factored_offset)?;
                self.set(register, Saved::AtCfa(offset));
            }
            I::ValOffset { register, .. }
            | I::ValOffsetSf { register, .. }
            | I::Register {
                dest_register: register,
                ..
            }
            | I::Expression { register, .. }
            | I::ValExpression { register, .. } => self.set(register, Saved::Other),
            I::Restore { register } => {
                let mut initial = self.initial;
                if let Some(saved) = initial.column(self.factors.registers, register) {
                    self.set(register, *saved);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Runs a CIE's initial instructions; `None` if they are invalid.
pub(super) fn initial_state<'a, S: UnwindSection<Reader<'a>>>(
    section: &S,
    factors: Factors,
    instructions: gimli::CallFrameInstructionIter<'_, Reader<'a>>,
    budget: &mut Budget,
) -> Result<Option<State>, Error> {
    let mut machine = Machine::new(factors, State::EMPTY, 0);
    for instruction in instructions {
        budget.spend(1)?;
        let Ok(instruction) = instruction else {
            return Ok(None);
        };
        if !matches!(
            machine.execute(&instruction, computed(section, &instruction)),
            Ok(Effect::Columns)
        ) {
            return Ok(None);
        }
    }
    Ok(Some(machine.state))
}

/// Input of [`run`] for one FDE.
pub(super) struct Function {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) initial: State,
    pub(super) factors: Factors,
}

/// Runs an FDE's instructions and passes each row's start address and rule to `sink`, in order of
/// address. After an invalid instruction the rule is [`Rule::Unsupported`].
pub(super) fn run<'a, S: UnwindSection<Reader<'a>>>(
    section: &S,
    function: &Function,
    instructions: gimli::CallFrameInstructionIter<'_, Reader<'a>>,
    budget: &mut Budget,
    sink: &mut impl FnMut(u64, Rule),
) -> Result<(), Error> {
    let mut machine = Machine::new(function.factors, function.initial, function.start);
    let mut row_start = function.start;
    for instruction in instructions {
        budget.spend(1)?;
        let before = machine.state;
        let effect = match instruction {
            Ok(instruction) => machine.execute(&instruction, computed(section, &instruction)),
            Err(_) => Err(Nonsense),
        };
        match effect {
            Ok(Effect::Columns) => {}
            Ok(Effect::Row(address)) => {
                let row_end = address.min(function.end);
                emit(before, function, row_start..row_end, budget, sink)?;
                row_start = row_end;
            }
            Err(Nonsense) => {
                if row_start < function.end {
                    sink(row_start, Rule::Unsupported);
                }
                return Ok(());
            }
        }
    }
    emit(
        machine.state,
        function,
        row_start..function.end,
        budget,
        sink,
    )
}

fn emit(
    state: State,
    function: &Function,
    range: std::ops::Range<u64>,
    budget: &mut Budget,
    sink: &mut impl FnMut(u64, Rule),
) -> Result<(), Error> {
    if range.is_empty() {
        return Ok(());
    }
    match state.rule(&function.factors) {
        Ok(rule) => sink(range.start, rule),
        Err(_) if range.end - range.start > PLT_LEN_MAX => sink(range.start, Rule::Unsupported),
        Err(threshold) => {
            budget.spend((range.end - range.start) / 8)?;
            expand_plt(range, threshold, sink);
        }
    }
    Ok(())
}

/// Writes the rows of a PLT expression with an uncommon threshold: before the threshold a PLT entry
/// has pushed nothing, after it one word.
fn expand_plt(range: std::ops::Range<u64>, threshold: u8, sink: &mut impl FnMut(u64, Rule)) {
    let rbp = SavedRbp::Same;
    let mut address = range.start;
    while address < range.end {
        let entry = address & !15;
        let pushed = entry + u64::from(threshold);
        if address < pushed {
            sink(address, Rule::Sp { cfa_bytes: 8, rbp });
        }
        if pushed.max(address) < range.end {
            sink(pushed.max(address), Rule::Sp { cfa_bytes: 16, rbp });
        }
        let Some(next) = entry.checked_add(16) else {
            return;
        };
        address = next;
    }
}
