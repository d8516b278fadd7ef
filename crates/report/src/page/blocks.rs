//! Base64 in `<script>` blocks: bytes in, markup out. A block stays well below the longest string
//! that a browser can hold.

use std::io::{self, Write};

const OPEN: &[u8] = b"<script type=\"application/octet-stream;base64\">";
const CLOSE: &[u8] = b"</script>";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes in a block; a multiple of 3, so that only the last block is padded.
const BLOCK_BYTES: usize = 48 * 1024 * 1024;
/// Bytes encoded at once; a multiple of 3.
const PIECE_BYTES: usize = 24 * 1024;

/// A writer that turns bytes into blocks of base64.
pub(super) struct Blocks<W: Write> {
    out: W,
    pending: Vec<u8>,
    in_block: usize,
    block_bytes: usize,
}

impl<W: Write> Blocks<W> {
    pub(super) fn new(out: W) -> Self {
        Blocks {
            out,
            pending: Vec::new(),
            in_block: 0,
            block_bytes: BLOCK_BYTES,
        }
    }

    /// Writes the last bytes and closes the last block.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.encode()?;
        if self.in_block > 0 {
            self.out.write_all(CLOSE)
        } else {
            Ok(())
        }
    }

    fn encode(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.in_block == 0 {
            self.out.write_all(OPEN)?;
        }
        self.out.write_all(&base64(&self.pending))?;
        self.in_block += self.pending.len();
        self.pending.clear();
        if self.in_block >= self.block_bytes {
            self.out.write_all(CLOSE)?;
            self.in_block = 0;
        }
        Ok(())
    }
}

impl<W: Write> Write for Blocks<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES - self.pending.len());
        self.pending
            .extend_from_slice(bytes.get(..taken).unwrap_or_default());
        if self.pending.len() == PIECE_BYTES {
            self.encode()?;
        }
        Ok(taken)
    }

    /// Flushes encoded bytes. Bytes of an incomplete piece wait, so that padding is only at the
    /// end.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = (bits >> (18 - 6 * place)) as usize & 63;
            text.push(if place <= group.len() {
                ALPHABET[digit]
            } else {
                b'='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_the_vectors_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text.as_bytes());
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), b"+//+");
    }

    #[test]
    fn splits_into_blocks_padded_only_at_the_end() {
        let mut out = Vec::new();
        let mut blocks = Blocks {
            block_bytes: PIECE_BYTES,
            ..Blocks::new(&mut out)
        };
        let bytes: Vec<u8> = (0..PIECE_BYTES * 2 + 1).map(|i| i as u8).collect();
        blocks.write_all(&bytes).unwrap();
        blocks.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        let parts: Vec<&str> = text.split("</script>").collect();
        assert_eq!(parts.len(), 4);
        let body = |part: &str| {
            part.strip_prefix("<script type=\"application/octet-stream;base64\">")
                .map(str::to_owned)
                .unwrap()
        };
        let joined: String = parts[..3].iter().map(|part| body(part)).collect();
        assert_eq!(joined.as_bytes(), base64(&bytes));
        assert_eq!((parts[3], body(parts[2]).len()), ("", 4));
    }

    #[test]
    fn nothing_in_nothing_out() {
        let mut out = Vec::new();
        Blocks::new(&mut out).finish().unwrap();
        assert!(out.is_empty());
    }
}
