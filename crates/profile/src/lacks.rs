//! The profiler that made a recording, and how to make one with the data that this one lacks. Pure:
//! it reads no events.

use crate::info::Info;

/// The profiler that made a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorder {
    /// We did.
    Dwell,
    /// The JDK's own recorder.
    Jdk,
    /// Another profiler, or it is not known.
    Other,
}

/// Data that a recording may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Enough samples, or enough time.
    Samples,
    /// Samples that were due and could not be taken.
    Lost,
    /// Wall time.
    Wall,
    /// Safepoints.
    Safepoints,
    /// Objects that were allocated.
    Allocations,
    /// Objects that are still there.
    Live,
    /// Waits for locks.
    Locks,
}

impl Info {
    /// The profiler that made the recording.
    #[must_use]
    pub fn recorder(&self) -> Recorder {
        match self {
            info if !info.profiler_version.is_empty() => Recorder::Dwell,
            // Other profilers write the JDK's samples too, and add their names.
            info if info.engine.is_empty() && info.sample_event.starts_with("jdk.") => {
                Recorder::Jdk
            }
            _ => Recorder::Other,
        }
    }

    /// How to record the missing data, as the second half of a sentence.
    #[must_use]
    pub fn remedy(&self, lack: Lack) -> &'static str {
        match self.recorder() {
            Recorder::Jdk => remedy_of_the_jdk(lack),
            Recorder::Dwell | Recorder::Other => remedy(lack),
        }
    }
}

fn remedy(lack: Lack) -> &'static str {
    match lack {
        Lack::Samples => {
            "record longer (-d 60), under the load that is slow, and with a shorter interval \
             (-i 1ms, --wall 5ms)"
        }
        Lack::Lost => "use a longer interval (-i 10ms), so that dwell keeps up",
        Lack::Wall => "record with -e cpu,wall",
        Lack::Safepoints => "there were none, or the recorder does not record any",
        Lack::Allocations => "record with -e cpu,wall,alloc",
        Lack::Live => "record with -e cpu,wall,live",
        Lack::Locks => "record with -e cpu,wall,lock",
    }
}

/// How to get the data with the JDK's recorder, and with dwell.
fn remedy_of_the_jdk(lack: Lack) -> &'static str {
    match lack {
        Lack::Samples => {
            "record longer, under the load that is slow (jcmd PID JFR.start duration=60s \
             settings=profile); shorten the period of jdk.ExecutionSample (10 ms), or, from JDK 25 \
             on, enable jdk.CPUTimeSample with its throttle at 1 ms"
        }
        Lack::Lost => "give jdk.CPUTimeSample a longer throttle (20 ms), so that the JVM keeps up",
        Lack::Wall => {
            "the JDK's recorder has no wall-clock samples: enable jdk.ThreadPark, \
             jdk.JavaMonitorEnter, jdk.SocketRead and the like with a low threshold, or use \
             dwell record PID"
        }
        Lack::Safepoints => {
            "enable jdk.SafepointBegin and jdk.ExecuteVMOperation with a threshold of 0 ms, or use \
             dwell record PID"
        }
        Lack::Allocations => "enable jdk.ObjectAllocationSample (JDK 16 and later)",
        Lack::Live => {
            "the JDK's recorder keeps a few, without their number: the report has them as old \
             objects (jdk.OldObjectSample); dwell record -e cpu,wall,live PID counts them"
        }
        Lack::Locks => {
            "enable jdk.JavaMonitorEnter and, for locks of java.util.concurrent, jdk.ThreadPark \
             with a low threshold (0 ms), or use dwell record -e cpu,wall,lock PID"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Lack; 7] = [
        Lack::Samples,
        Lack::Lost,
        Lack::Wall,
        Lack::Safepoints,
        Lack::Allocations,
        Lack::Live,
        Lack::Locks,
    ];

    fn info(version: &str, engine: &str, event: &str) -> Info {
        Info {
            profiler_version: version.to_owned(),
            engine: engine.to_owned(),
            sample_event: event.to_owned(),
            ..Info::default()
        }
    }

    #[test]
    fn recorder_is_known_by_its_own_data() {
        let ours = info("0.1.0", "perf", "jdk.ExecutionSample");
        let theirs = info("", "async-profiler 4.1", "jdk.ExecutionSample");
        assert_eq!(ours.recorder(), Recorder::Dwell);
        assert_eq!(theirs.recorder(), Recorder::Other);
        assert_eq!(Info::default().recorder(), Recorder::Other);
        for event in ["jdk.ExecutionSample", "jdk.CPUTimeSample"] {
            assert_eq!(info("", "", event).recorder(), Recorder::Jdk);
        }
    }

    #[test]
    fn recordings_of_the_jdk_have_remedies_of_the_jdk() {
        let jdk = info("", "", "jdk.ExecutionSample");
        let ours = info("0.1.0", "", "");
        for lack in ALL {
            let (told, other) = (jdk.remedy(lack), ours.remedy(lack));
            assert_ne!(told, other);
            assert!(told.contains("jdk."), "{lack:?}: {told}");
            assert!(!other.contains("jdk."), "{lack:?}: {other}");
            // Options of dwell only for recordings of dwell.
            let told = told.replace("dwell record -e", "dwell record");
            assert!(!told.contains(" -"), "{lack:?}: {told}");
        }
    }
}
