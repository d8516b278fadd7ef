//! Prints a frozen walk: registers, blob names, code bytes, stack words, frames.

use dwell_frozen::Frozen;
use dwell_walker::hotspot::{CodeCache, nmethod::Nmethod};
use dwell_walker::{Frame, Memory};

/// The name of a blob, as far as the walk read it.
fn name_start(frozen: &Frozen, blob: u64) -> String {
    let at = blob.wrapping_add(frozen.layout.blob_name);
    let name = frozen.word(at).unwrap_or(0);
    let bytes = (0..64).map_while(|i| frozen.u8(name.wrapping_add(i)).ok());
    let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&text).into_owned()
}

fn blob_text(frozen: &Frozen, code: &CodeCache, pc: u64) -> String {
    if !code.contains(pc) {
        return String::new();
    }
    let blob = match code.find(frozen, &frozen.layout, pc) {
        Ok(Some(blob)) => blob,
        Ok(None) => return "no blob".into(),
        Err(_) => return "in code, not checked".into(),
    };
    let name = name_start(frozen, blob.addr);
    let offset = pc.wrapping_sub(blob.code_begin);
    let nm = Nmethod::load(frozen, &frozen.layout, &blob).ok();
    let ret = nm.and_then(|n| n.is_return_address(frozen, &frozen.layout, pc).ok());
    format!(
        "{name} code+{offset:#x} frame {} return {ret:?}",
        blob.frame_bytes
    )
}

fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let frozen = Frozen::parse(&text).expect("a frozen walk");
        let code = CodeCache::from_words(&frozen.code);
        println!(
            "== {path} {} interp {:x?}",
            frozen.outcome,
            code.interpreter()
        );
        println!("{:x?}\n{:x?}", frozen.regs, frozen.thread);
        println!("pc: {}", blob_text(&frozen, &code, frozen.regs.start().pc));
        let bytes: Vec<String> = (0..48)
            .map(|i| frozen.regs.start().pc - 16 + i)
            .map(|at| match (frozen.u8(at), at == frozen.regs.start().pc) {
                (Ok(b), true) => format!("|{b:02x}"),
                (Ok(b), false) => format!("{b:02x}"),
                (Err(_), _) => "??".into(),
            })
            .collect();
        println!("code: {}", bytes.join(" "));
        for i in 0..24 {
            let at = frozen.regs.start().sp + i * 8;
            let word = frozen.word(at).unwrap_or(0);
            let mark = if at == frozen.regs.start().fp {
                " <- fp"
            } else {
                ""
            };
            println!(
                "  sp+{:<4}{word:016x} {}{mark}",
                i * 8,
                blob_text(&frozen, &code, word)
            );
        }
        for frame in &frozen.frames {
            println!("  {frame:x?} {}", blob_text(&frozen, &code, frame.id));
        }
        let mut frames = vec![Frame::EMPTY; 8193];
        let walk = frozen.walk(&mut frames);
        println!(
            "replayed: {walk:?} same {}",
            frames[..walk.len] == frozen.frames[..]
        );
    }
}
