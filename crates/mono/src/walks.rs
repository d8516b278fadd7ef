//! The drainer's part of Mono: names and lines. It does not call Mono and does not walk stacks,
//! because the handler has done that. Independent of the recorder's state.

use crate::code::{self, Method};
use crate::known_libraries;
use crate::sys::walk::NUMBERED;
use dwell_recorder::native::Modules;
use dwell_recorder::record::names::{Name, NameId, Names};
use dwell_recorder::runtime::setup::Setup;
use dwell_recorder::runtime::{Changes, Named, Runtime, Walks};
use dwell_signal::Slot;
use dwell_walker::native::NativeCode;
use dwell_walker::{Failure, Frame, Outcome, Walk};
use std::collections::HashMap;

/// Names for one recording.
#[derive(Default)]
pub struct MonoWalks {
    /// Methods of this chunk, by number.
    known: HashMap<u32, (NameId, Method)>,
    /// Number of code changes at the start of the last drain.
    changes: u64,
}

impl<R: Runtime> Walks<R> for MonoWalks {
    fn new(_: &Setup<R>) -> MonoWalks {
        MonoWalks::default()
    }

    fn begin(&mut self, _: bool) -> Changes {
        // Numbers of methods are never reused, but addresses are.
        let changes = code::changes();
        let before = std::mem::replace(&mut self.changes, changes);
        Changes {
            is_another_moment: before != changes,
            ..Changes::default()
        }
    }

    fn publish(&self, modules: &Modules) {
        known_libraries::publish(modules);
    }

    fn walk<N: NativeCode>(&mut self, _: &Slot<'_>, _: &N, frames: &mut [Frame]) -> Walk {
        // Mono walks only the calling thread, and a stack that arrives here was not walked in the
        // handler.
        let failure = Failure::UnknownPc;
        let mut len = 0;
        if let Some(first) = frames.first_mut() {
            *first = Frame::failed(failure);
            len = 1;
        }
        Walk {
            len,
            outcome: Outcome::Failed(failure),
            gaps: 0,
            flaw: None,
        }
    }

    fn name(&mut self, frame: &Frame, names: &mut Names) -> Option<Named> {
        let offset = frame.bci.max(0) as u32;
        let (name, line) = if frame.id & NUMBERED == 0 {
            let method = code::method_at(frame.id)?;
            (names.add(method.called.name()), method.line(offset))
        } else {
            let number = frame.id as u32;
            let (name, method) = match self.known.get(&number) {
                Some(known) => known,
                None => {
                    let method = code::method(number)?;
                    let name = names.add(method.called.name());
                    self.known.entry(number).or_insert((name, method))
                }
            };
            (*name, method.line(offset))
        };
        Some(Named {
            name,
            line,
            bci: -1,
        })
    }

    fn stub(&mut self, pc: u64, names: &mut Names) -> NameId {
        let name = code::stub(pc);
        names.add(Name::native(
            "[stub]",
            name.as_deref().unwrap_or("trampoline"),
        ))
    }

    fn forget_names(&mut self) {
        self.known.clear();
    }
}
