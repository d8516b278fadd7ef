//! Operations of the JVM that stop all threads, except collections.

/// A sort of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Stacks of threads are asked for.
    Stacks,
    /// It is looked for deadlocks.
    Deadlocks,
    /// All objects of the heap are visited.
    Heap,
    /// Classes are changed.
    Classes,
    /// Locks are taken back from threads that had them to themselves.
    Bias,
}

impl Operation {
    /// The sort that the JVM calls so (src/hotspot/share/runtime/vmOperation.hpp), if it is known.
    #[must_use]
    pub fn of(name: &str) -> Option<Operation> {
        Some(match name {
            "ThreadDump"
            | "PrintThreads"
            | "GetAllStackTraces"
            | "GetThreadListStackTraces"
            | "PrintJNI" => Operation::Stacks,
            "FindDeadlocks" => Operation::Deadlocks,
            "HeapDumper" | "GC_HeapInspection" | "HeapWalkOperation" | "HeapIterateOperation" => {
                Operation::Heap
            }
            "RedefineClasses" => Operation::Classes,
            "RevokeBias" | "BulkRevokeBias" | "EnableBiasedLocking" => Operation::Bias,
            _ => return None,
        })
    }
}
