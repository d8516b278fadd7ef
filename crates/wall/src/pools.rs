//! Which frames say that a pooled worker waits for work: one table, which users can extend.

use crate::facts::Named;

/// Java frames from the top that are looked at: a wait for work is not deep.
const FRAMES_MAX: usize = 16;

/// `class.method` with slashes in the class; a `*` at the end of either stands for anything.
const KNOWN: &[&str] = &[
    // The JDK.
    "java/util/concurrent/ThreadPoolExecutor.getTask",
    "java/util/concurrent/ForkJoinPool.awaitWork",
    "java/util/concurrent/DelayScheduler.loop",
    "java/util/TimerThread.mainLoop",
    "java/lang/ref/ReferenceQueue*.remove*",
    "java/lang/ref/Reference.waitForReferencePendingList",
    "java/lang/VirtualThread.takeVirtualThreadListToUnblock",
    "jdk/internal/net/http/HttpClientImpl$SelectorManager.run",
    "sun/net/httpserver/ServerImpl$Dispatcher.run",
    "sun/nio/ch/EPollPort$EventHandlerTask.poll",
    "sun/nio/ch/Poller.pollerLoop",
    "sun/nio/ch/Poller.subPollerLoop",
    "sun/nio/ch/Poller.pollLoop",
    "sun/nio/ch/Poller.updateLoop",
    "java/lang/ProcessHandleImpl*.waitForProcessExit*",
    "java/lang/UNIXProcess.waitForProcessExit",
    "jdk/jfr/internal/PlatformRecorder.takeNap",
    "sun/net/www/http/KeepAliveCache.run",
    "sun/rmi/transport/tcp/TCPTransport$AcceptLoop.executeAcceptLoop",
    // Netty.
    "io/netty/channel/nio/NioEventLoop.select",
    "io/netty/channel/nio/NioIoHandler.select",
    "io/netty/channel/epoll/EpollEventLoop.epollWait*",
    "io/netty/channel/epoll/EpollIoHandler.epollWait*",
    "io/netty/channel/uring/IOUring*.*wait*",
    "io/netty/util/concurrent/SingleThreadEventExecutor.takeTask",
    "io/netty/util/HashedWheelTimer$Worker.waitForNextTick",
    // Servers.
    "org/apache/tomcat/util/threads/TaskQueue.*",
    "org/apache/tomcat/util/threads/ThreadPoolExecutor.getTask",
    "org/apache/tomcat/util/net/NioEndpoint$Poller.run",
    "org/apache/tomcat/util/net/Acceptor.run",
    "org/apache/tomcat/util/net/NioEndpoint.serverSocketAccept",
    "org/eclipse/jetty/util/thread/QueuedThreadPool*.idleJobPoll",
    "org/eclipse/jetty/util/thread/ReservedThreadExecutor$ReservedThread.reservedWait",
    "org/eclipse/jetty/io/ManagedSelector.nioSelect",
    "org/eclipse/jetty/io/ManagedSelector*.select",
    "org/xnio/nio/WorkerThread.run",
    "org/jboss/threads/EnhancedQueueExecutor$ThreadBody.run",
    // Languages.
    "kotlinx/coroutines/scheduling/CoroutineScheduler$Worker.park",
    "kotlinx/coroutines/scheduling/CoroutineScheduler$Worker.tryPark",
    "akka/actor/LightArrayRevolverScheduler*.waitNanos",
    "org/apache/pekko/actor/LightArrayRevolverScheduler*.waitNanos",
];

/// The table.
#[derive(Clone, Debug)]
pub struct Pools {
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    class: Text,
    method: Text,
}

/// Parts of a text, anything between them.
#[derive(Clone, Debug)]
struct Text {
    parts: Vec<String>,
}

impl Default for Pools {
    fn default() -> Pools {
        let patterns = KNOWN.iter().filter_map(|known| Pattern::parse(known));
        Pools {
            patterns: patterns.collect(),
        }
    }
}

impl Pools {
    /// Adds `class.method`, with dots or slashes in the class and `*` for anything.
    ///
    /// # Errors
    /// What is wrong with the pattern.
    pub fn add(&mut self, pattern: &str) -> Result<(), String> {
        let parsed = Pattern::parse(pattern)
            .ok_or_else(|| format!("'{pattern}' is no method: write package.Class.method"))?;
        self.patterns.push(parsed);
        Ok(())
    }

    /// Whether one of the innermost Java frames is a pool's wait for work.
    #[must_use]
    pub fn is_idle(&self, frames: &[Named<'_>]) -> bool {
        let mut java = frames.iter().filter(|f| f.is_managed).take(FRAMES_MAX);
        java.any(|frame| self.patterns.iter().any(|pattern| pattern.matches(frame)))
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Pattern> {
        let (class, method) = text.trim().rsplit_once('.')?;
        let plain = |c: char| !c.is_whitespace() && !c.is_control();
        let sound = !class.is_empty() && !method.is_empty() && text.trim().chars().all(plain);
        sound.then(|| Pattern {
            class: Text::parse(&class.replace('.', "/")),
            method: Text::parse(method),
        })
    }

    fn matches(&self, frame: &Named<'_>) -> bool {
        self.class.matches(frame.class) && self.method.matches(frame.name)
    }
}

impl Text {
    fn parse(text: &str) -> Text {
        let parts = text.split('*').map(str::to_owned).collect();
        Text { parts }
    }

    fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = &self.parts[..] else {
            return self.parts.first().is_some_and(|only| only == text);
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else {
            return false;
        };
        for part in middle {
            match rest.find(part.as_str()) {
                Some(at) => rest = rest.get(at + part.len()..).unwrap_or(""),
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_idle(pools: &Pools, class: &str, name: &str) -> bool {
        pools.is_idle(&[Named {
            class,
            name,
            is_managed: true,
        }])
    }

    #[test]
    fn every_known_pattern_is_one() {
        assert_eq!(Pools::default().patterns.len(), KNOWN.len());
    }

    #[test]
    fn known_waits_are_found() {
        let pools = Pools::default();
        let queue = "java/lang/ref/ReferenceQueueWithOverflow";
        assert!(is_idle(&pools, queue, "remove0"));
        assert!(is_idle(
            &pools,
            "io/netty/channel/nio/NioEventLoop",
            "select"
        ));
        assert!(!is_idle(
            &pools,
            "io/netty/channel/nio/NioEventLoop",
            "selectNow"
        ));
        assert!(!is_idle(&pools, "app/Worker", "getTask"));
        // Threads that the JDK has for itself.
        for (class, method) in [
            ("java/util/concurrent/DelayScheduler", "loop"),
            ("jdk/jfr/internal/PlatformRecorder", "takeNap"),
            ("sun/net/www/http/KeepAliveCache", "run"),
            (
                "sun/rmi/transport/tcp/TCPTransport$AcceptLoop",
                "executeAcceptLoop",
            ),
        ] {
            assert!(is_idle(&pools, class, method), "{class}.{method}");
        }
    }

    #[test]
    fn users_add_their_own() {
        let mut pools = Pools::default();
        pools.add("com.acme.*Worker.await*Job").unwrap();
        assert!(is_idle(&pools, "com/acme/pool/FastWorker", "awaitNextJob"));
        assert!(is_idle(&pools, "com/acme/Worker", "awaitJob"));
        assert!(!is_idle(&pools, "com/acme/Worker", "awaitJobs"));
        assert!(!is_idle(&pools, "org/acme/Worker", "awaitJob"));
        // What one part of a pattern has taken is not there for the next.
        pools.add("com.acme.*Job*Job.run").unwrap();
        for (class, is_pool) in [("Job", false), ("JobJob", true), ("MyJobOfJob", true)] {
            assert_eq!(
                is_idle(&pools, &format!("com/acme/{class}"), "run"),
                is_pool,
                "{class}"
            );
        }
        for wrong in ["", "method", ".method", "Class.", "a b.c"] {
            assert!(pools.add(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_java_frames_near_the_top_count() {
        let pools = Pools::default();
        let mut frames = vec![
            Named {
                class: "app/A",
                name: "recurse",
                is_managed: true,
            };
            FRAMES_MAX
        ];
        let wait = Named {
            class: "java/util/TimerThread",
            name: "mainLoop",
            is_managed: true,
        };
        frames.push(wait);
        assert!(!pools.is_idle(&frames));
        assert!(pools.is_idle(&frames[1..]));
        assert!(!pools.is_idle(&[Named {
            is_managed: false,
            ..wait
        }]));
    }
}
