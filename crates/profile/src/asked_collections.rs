//! Which collections were asked for, by what a recording says of them. Pure.

use crate::collections::Asked;
use crate::profile::Profile;
use crate::tree::NodeId;

/// Causes of collections that nothing in the heap is the reason for.
const ASKED: [&str; 6] = [
    "System.gc()",
    "Diagnostic Command",
    "Heap Inspection Initiated GC",
    "Heap Dump Initiated GC",
    "JvmtiEnv ForceGarbageCollection",
    "WhiteBox Initiated Full GC",
];
/// The JVM's operations for those.
const ASKED_OPERATIONS: [&str; 6] = [
    "G1CollectFull",
    "GenCollectFull",
    "GenCollectFullConcurrent",
    "ParallelGCSystemGC",
    "ParallelGCCollect",
    "SerialGCCollect",
];
/// Ends of the names of operations that collect because memory is wanted.
const WANTED_OPERATIONS: [&str; 4] = [
    "ForAllocation",
    "FailedAllocation",
    "IncCollectionPause",
    "TryInitiateConcMark",
];

impl Profile {
    /// The places where the program requested collections, from the JDK's recorder.
    #[must_use]
    pub fn collection_calls(&self) -> &[NodeId] {
        &self.collection_calls
    }

    /// How many collections were asked for: by their causes, or by the operations that the JVM
    /// stopped for. `None` where neither is in the recording.
    #[must_use]
    pub fn asked_collections(&self) -> Option<Asked> {
        let mut sums = Asked::default();
        for collection in &self.collections {
            let cause = self.names.text(collection.cause);
            sums.add(ASKED.contains(&cause), 1, collection.paused_ns);
        }
        if sums.all == 0 {
            for stop in self.safepoints.iter().filter(|stop| stop.is_known) {
                let operation = self.names.text(stop.operation);
                let is_asked = ASKED_OPERATIONS.contains(&operation);
                let is_end = |end: &&str| operation.ends_with(*end);
                if is_asked || WANTED_OPERATIONS.iter().any(is_end) {
                    sums.add(is_asked, stop.count, stop.operation_ns);
                }
            }
        }
        (sums.all > 0).then_some(sums)
    }
}

#[cfg(test)]
mod tests {
    use crate::builder::Builder;
    use crate::collections::Collection;
    use crate::stops::Safepoint;

    fn stop(builder: &mut Builder, operation: &str, count: u64, operation_ns: u64) {
        let operation = builder.name(operation);
        builder.safepoints.push(Safepoint {
            time_ns: 0,
            id: 0,
            operation,
            reaching_ns: 0,
            operation_ns,
            threads: 1,
            running: 0,
            count,
            is_known: true,
        });
    }

    #[test]
    fn collections_asked_for_are_known_by_cause() {
        let mut builder = Builder::default();
        for (cause, paused_ns) in [("System.gc()", 70), ("G1 Evacuation Pause", 20)] {
            let cause = builder.name(cause);
            builder.collections.push(Collection { cause, paused_ns });
        }
        // A collection with a recorded cause counts once.
        stop(&mut builder, "G1CollectFull", 1, 70);
        let asked = builder.finish().asked_collections().unwrap();
        assert_eq!((asked.asked, asked.all), (1, 2));
        assert_eq!((asked.asked_ns, asked.all_ns), (70, 90));
        assert!(asked.is_most());
    }

    #[test]
    fn collections_asked_for_are_known_by_operation() {
        let mut builder = Builder::default();
        assert_eq!(builder.clone().finish().asked_collections(), None);
        stop(&mut builder, "ThreadDump", 9, 900);
        assert_eq!(builder.clone().finish().asked_collections(), None);
        stop(&mut builder, "ParallelGCFailedAllocation", 3, 60);
        stop(&mut builder, "ParallelGCSystemGC", 2, 50);
        let asked = builder.finish().asked_collections().unwrap();
        assert_eq!((asked.asked, asked.all), (2, 5));
        assert!(!asked.is_most());
    }
}
