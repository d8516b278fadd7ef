//! Threads as constants of a chunk. A constant in the file never changes. A renamed thread gets
//! another constant with the same ids, and readers make one thread of both.

use super::sample::Sampler;
use crate::runtime::Runtime;
use crate::runtime::setup::Setup;
use crate::threads::ThreadName;
use crate::threads::{NOBODY_KEY, VIRTUAL_KEY};
use dwell_jfr::writer::{ChunkWriter, ThreadId, ThreadInfo};

/// Lets events refer to threads by their present names.
pub fn rename<R: Runtime>(chunk: &mut ChunkWriter, setup: &Setup<R>, sampler: &mut Sampler<'_, R>) {
    let renamed = setup.recorder.threads.take_renamed();
    for key in renamed
        .into_iter()
        .chain(sampler.virtual_names.take_renamed())
    {
        // A thread that is not in the chunk yet is added with its last name.
        if chunk.thread_id(key).is_some() {
            write(chunk, setup, key, sampler);
        }
    }
}

/// Writes the present data of a thread as a constant.
pub fn write<R: Runtime>(
    chunk: &mut ChunkWriter,
    setup: &Setup<R>,
    key: u64,
    sampler: &Sampler<'_, R>,
) -> ThreadId {
    if key & VIRTUAL_KEY != 0 {
        return write_virtual(chunk, key, sampler.virtual_names.get(key));
    }
    if key == NOBODY_KEY {
        let os_name = "[ended or unseen threads]";
        return chunk.update_thread(
            key,
            &ThreadInfo {
                os_name,
                ..ThreadInfo::default()
            },
        );
    }
    let known = setup.recorder.threads.get(key).unwrap_or_default();
    write_platform(chunk, key, &known)
}

/// The same for a thread with this last name.
pub fn write_named(chunk: &mut ChunkWriter, key: u64, name: &ThreadName) -> ThreadId {
    match key & VIRTUAL_KEY {
        0 => write_platform(chunk, key, name),
        _ => write_virtual(chunk, key, name.name.as_deref().unwrap_or("")),
    }
}

fn write_virtual(chunk: &mut ChunkWriter, key: u64, name: &str) -> ThreadId {
    let id = key & !VIRTUAL_KEY;
    chunk.update_thread(
        key,
        &ThreadInfo {
            os_name: "",
            os_tid: 0,
            java_name: Some(name),
            java_tid: id as i64,
            group: Some("VirtualThreads"),
            is_virtual: true,
        },
    )
}

fn write_platform(chunk: &mut ChunkWriter, key: u64, known: &ThreadName) -> ThreadId {
    chunk.update_thread(
        key,
        &ThreadInfo {
            os_name: &known.comm,
            os_tid: i64::from(known.tid),
            java_name: known.name.as_deref(),
            java_tid: known.id,
            group: known.group.as_deref(),
            is_virtual: false,
        },
    )
}
