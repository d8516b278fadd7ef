//! Gzip on several threads: bytes in, one gzip stream out. Each piece is compressed separately and
//! ends at a whole byte, so that the pieces form one stream. The output does not depend on the
//! number of threads.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// Bytes of a piece. A piece cannot refer to the 32 KB before it, which is a small loss at this
/// size.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces that are kept until they are compressed.
const PIECES: usize = 8;
/// Threads that compress.
const THREADS_MAX: usize = 4;
/// Deflated, with no time and no name, from nowhere in particular (RFC 1952).
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// A writer that compresses its input.
pub(super) struct Zip<W: Write> {
    out: W,
    level: Compression,
    /// Whole pieces, and the last one, to which more is added.
    pieces: Vec<Vec<u8>>,
    check: Crc,
    threads: usize,
}

/// A piece that is compressed, and its check sum.
type Packed = io::Result<(Vec<u8>, Crc)>;

impl<W: Write> Zip<W> {
    pub(super) fn new(mut out: W, level: Compression) -> io::Result<Zip<W>> {
        out.write_all(&HEAD)?;
        let threads = thread::available_parallelism().map_or(1, |count| count.get());
        Ok(Zip {
            out,
            level,
            pieces: Vec::new(),
            check: Crc::new(),
            threads: threads.min(THREADS_MAX),
        })
    }

    /// Writes the last bytes and returns the inner writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.pack(true)?;
        self.out.write_all(&self.check.sum().to_le_bytes())?;
        // The length modulo 2^32.
        self.out.write_all(&self.check.amount().to_le_bytes())?;
        Ok(self.out)
    }

    /// Compresses all pieces; the last of all ends the stream.
    fn pack(&mut self, is_end: bool) -> io::Result<()> {
        if is_end && self.pieces.is_empty() {
            self.pieces.push(Vec::new());
        }
        let (pieces, level) = (&self.pieces, self.level);
        let last = pieces.len().saturating_sub(1);
        let flush = |at: usize| match is_end && at == last {
            true => FlushCompress::Finish,
            false => FlushCompress::Sync,
        };
        let next = AtomicUsize::new(0);
        let work = || -> Vec<(usize, Packed)> {
            let mut packed = Vec::new();
            // Every turn takes another piece.
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(at) else {
                    return packed;
                };
                packed.push((at, pack(piece, level, flush(at))));
            }
        };
        let mut packed = thread::scope(|scope| {
            let others = 1..self.threads.min(pieces.len());
            let others: Vec<_> = others.map(|_| scope.spawn(work)).collect();
            let mut packed = work();
            for other in others {
                // A panic there is one here.
                packed.extend(
                    other
                        .join()
                        .unwrap_or_else(|e| std::panic::resume_unwind(e)),
                );
            }
            packed
        });
        packed.sort_unstable_by_key(|(at, _)| *at);
        for (_, piece) in packed {
            let (bytes, check) = piece?;
            self.out.write_all(&bytes)?;
            self.check.combine(&check);
        }
        self.pieces.clear();
        Ok(())
    }
}

impl<W: Write> Write for Zip<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_full = |piece: &Vec<u8>| piece.len() >= PIECE_BYTES;
        if self.pieces.last().is_none_or(is_full) {
            if self.pieces.len() >= PIECES {
                self.pack(false)?;
            }
            self.pieces.push(Vec::with_capacity(PIECE_BYTES));
        }
        let Some(piece) = self.pieces.last_mut() else {
            return Ok(0);
        };
        let taken = bytes.len().min(PIECE_BYTES - piece.len());
        piece.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        Ok(taken)
    }

    /// Pieces wait until there are some, so that they are the same however much is written at once.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn pack(piece: &[u8], level: Compression, flush: FlushCompress) -> Packed {
    let mut zip = Compress::new(level, false);
    // Incompressible data grows by a few bytes in ten thousand.
    let mut bytes = Vec::with_capacity(piece.len() + piece.len() / 64 + 1024);
    let status = zip.compress_vec(piece, &mut bytes, flush)?;
    let is_whole = match flush {
        FlushCompress::Finish => status == Status::StreamEnd,
        _ => bytes.len() < bytes.capacity(),
    };
    if !is_whole || zip.total_in() != piece.len() as u64 {
        return Err(io::Error::other("the page's data cannot be compressed"));
    }
    bytes.shrink_to_fit();
    let mut check = Crc::new();
    check.update(piece);
    Ok((bytes, check))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::bufread::GzDecoder;
    use std::io::Read;

    /// Bytes of which some repeat and some do not (xorshift).
    fn bytes(count: usize) -> Vec<u8> {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let byte = |at: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            match at / 5_000 % 3 {
                0 => random as u8,
                1 => (random % 3) as u8,
                _ => at as u8,
            }
        };
        (0..count).map(byte).collect()
    }

    fn zipped(bytes: &[u8], threads: usize, at_once: usize) -> Vec<u8> {
        let mut zip = Zip::new(Vec::new(), Compression::fast()).unwrap();
        zip.threads = threads;
        for some in bytes.chunks(at_once) {
            zip.write_all(some).unwrap();
        }
        zip.finish().unwrap()
    }

    #[test]
    fn written_pieces_are_read_back_as_one_stream() {
        for count in [
            0,
            1,
            1000,
            PIECE_BYTES,
            PIECE_BYTES + 1,
            9 * PIECE_BYTES + 77,
        ] {
            let bytes = bytes(count);
            let zipped = zipped(&bytes, 3, 1 << 19);
            let mut decoder = GzDecoder::new(zipped.as_slice());
            let mut back = Vec::new();
            decoder.read_to_end(&mut back).unwrap();
            assert!(back == bytes, "{count}");
            // One member: a browser refuses data after it.
            assert!(decoder.into_inner().is_empty(), "{count}");
        }
    }

    #[test]
    fn neither_threads_nor_pieces_written_change_it() {
        let bytes = bytes(3 * PIECE_BYTES + 5);
        let one = zipped(&bytes, 1, bytes.len());
        assert!(one.len() < bytes.len() * 3 / 4);
        assert!(one == zipped(&bytes, 4, 4321));
    }
}
