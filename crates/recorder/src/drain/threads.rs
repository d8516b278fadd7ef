//! Threads as constants of a chunk. What is in the file stays as it is: who is renamed gets another
//! constant, with the same ids, and readers make one thread of both.

use super::sample::{NOBODY_KEY, Sampler, VIRTUAL_KEY};
use crate::runtime::Runtime;
use crate::session::Setup;
use dwell_jfr::writer::{ChunkWriter, ThreadId, ThreadInfo};

/// Lets events refer to threads by the names that they have by now.
pub fn rename<R: Runtime>(chunk: &mut ChunkWriter, setup: &Setup<R>, sampler: &mut Sampler<'_, R>) {
    let renamed = setup.recorder.threads.take_renamed();
    for key in renamed
        .into_iter()
        .chain(sampler.virtual_names.take_renamed())
    {
        // Who is not in the chunk gets there with the last name.
        if chunk.thread_id(key).is_some() {
            write(chunk, setup, key, sampler);
        }
    }
}

/// What is known of a thread by now, as a constant.
pub fn write<R: Runtime>(
    chunk: &mut ChunkWriter,
    setup: &Setup<R>,
    key: u64,
    sampler: &Sampler<'_, R>,
) -> ThreadId {
    if key & VIRTUAL_KEY != 0 {
        let id = key & !VIRTUAL_KEY;
        return chunk.update_thread(
            key,
            &ThreadInfo {
                os_name: "",
                os_tid: 0,
                java_name: Some(sampler.virtual_names.get(key)),
                java_tid: id as i64,
                group: Some("VirtualThreads"),
                is_virtual: true,
            },
        );
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
