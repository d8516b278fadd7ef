//! Monitors that threads own, by the frames that locked them, whether or not other threads wait for
//! them.

use crate::dump::LockedText;
use crate::look::{Looker, Trail};
use crate::memory::Pages;
use dwell_walker::hotspot::locked::{self, Locked};
use dwell_walker::{Frame, FrameKind, Host};

/// Maximum number of monitors reported per thread.
const LOCKED_MAX: usize = 1024;

impl Looker<'_, '_> {
    /// The monitors of all frames of a walk, by frame. Within a frame the last one comes first, as
    /// in the JDK's dumps. Monitors that cannot be read are left out.
    pub(crate) fn locked(&self, pages: &Pages<'_>, trail: &Trail) -> Vec<LockedText> {
        let mut found = Vec::new();
        for (index, at) in &trail.places {
            if found.len() >= LOCKED_MAX {
                break;
            }
            let Some(frame) = trail.frames.get(*index) else {
                continue;
            };
            let mut own: Vec<(usize, Locked)> = Vec::new();
            // If a frame can be read only in part, it shows that part.
            let _ = match frame.kind {
                FrameKind::Interpreted => {
                    let layout = &self.vm.layout;
                    locked::interpreted(pages, layout, at.fp, frame.id, |it| own.push((0, it)))
                }
                FrameKind::C1 | FrameKind::C2 | FrameKind::Inlined => {
                    let told = self.compiled(pages, *at, &mut own);
                    // The first one comes first.
                    own.reverse();
                    own.sort_by_key(|(scope, _)| *scope);
                    told
                }
                _ => Ok(()),
            };
            let texts = own.into_iter().map(|(scope, locked)| LockedText {
                frame: index + scope,
                object: locked.object,
                class: self.class_of(self.vm.live, locked.object),
                is_eliminated: locked.is_eliminated,
            });
            found.extend(texts.filter(|it| trail.frames.get(it.frame).is_some_and(is_java)));
        }
        found.truncate(LOCKED_MAX);
        found
    }

    fn compiled(
        &self,
        pages: &Pages<'_>,
        at: dwell_walker::native::NativeRegs,
        own: &mut Vec<(usize, Locked)>,
    ) -> Result<(), dwell_walker::Fault> {
        let layout = &self.vm.layout;
        let Some(blob) = self.vm.code.find(pages, layout, at.pc)? else {
            return Ok(());
        };
        locked::compiled(Host, pages, layout, &blob, at, |scope, it| {
            own.push((scope, it))
        })
    }
}

fn is_java(frame: &Frame) -> bool {
    frame.kind.is_managed()
}
