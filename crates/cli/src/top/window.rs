//! A snapshot: the samples and looks of the window, each with its time, and the sums of the head.
//! Pure.

use super::still::{self, Lived};
use dwell_profile::{
    CallTree, GroupBy, Grouped, Look, NodeId, Profile, Safepoint, StretchKind, Window,
    is_of_platform, merged_tree,
};

/// Cause of idle pool threads, which are not of interest for slow requests.
pub const IDLE: &str = dwell_profile::IDLE;
/// The cause of time on a processor.
pub const RUNNING: &str = dwell_profile::RUNNING;

/// CPU time and wall time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// On a processor.
    pub cpu: u64,
    /// Of Java threads.
    pub wall: u64,
}

impl std::ops::AddAssign<&Time> for Time {
    fn add_assign(&mut self, other: &Time) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.wall = self.wall.saturating_add(other.wall);
    }
}

/// Origin of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The JVM, a library or the kernel.
    Native,
    /// The JDK.
    Jdk,
    /// The program.
    Program,
}

/// Some time of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The thread.
    pub thread: u32,
    /// The stack, in the tree of methods.
    pub node: NodeId,
    /// The stack, in the profile's own tree.
    pub place: NodeId,
    /// The request context.
    pub context: Option<u32>,
    /// The cause of waiting, by a name of the profile; `None`: it ran.
    pub cause: Option<u32>,
    /// The time.
    pub time: Time,
}

/// Some stops of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// Their number.
    pub count: u64,
    /// Their total time.
    pub sum_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

impl Stops {
    fn add(&mut self, count: u64, ns: u64) {
        self.count += count;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        // For several together, the longest is unknown.
        if count == 1 {
            self.longest_ns = self.longest_ns.max(ns);
        }
    }
}

/// The content of a recording.
pub struct Newest {
    /// All chunks that are kept: those of the window, and older ones.
    pub profile: Profile,
    /// The profile without the older ones, if there are any.
    pub recent: Option<Profile>,
    /// The numbers of threads.
    pub lived: Vec<Lived>,
}

/// A snapshot.
pub struct Snapshot {
    /// The recording's last chunks; more than the window.
    pub profile: Profile,
    /// The chunks of the window alone, if there are older ones.
    recent: Option<Profile>,
    /// The methods, with their names and frames.
    pub methods: Grouped,
    /// The origin of each method.
    pub kinds: Vec<Kind>,
    /// Stacks of methods.
    pub tree: CallTree,
    /// The time in the window.
    pub pieces: Vec<Piece>,
    /// Begin of the window, in nanoseconds since the Unix epoch.
    pub from_ns: u64,
    /// End of the window.
    pub to_ns: u64,
    window: Window,
}

impl Snapshot {
    /// The last part of a profile.
    #[cfg(test)]
    pub fn new(profile: Profile, window_ns: u64) -> Snapshot {
        let newest = Newest {
            profile,
            recent: None,
            lived: Vec::new(),
        };
        Snapshot::before(newest, window_ns, 0)
    }

    /// The window that ended this long ago.
    pub fn before(newest: Newest, window_ns: u64, lag_ns: u64) -> Snapshot {
        let profile = newest.profile;
        let info = profile.info();
        let end_ns = info.start_ns.saturating_add(info.duration_ns);
        let to_ns = end_ns.saturating_sub(lag_ns).max(info.start_ns);
        let from_ns = to_ns.saturating_sub(window_ns).max(info.start_ns);
        let window = window(from_ns, to_ns, lag_ns);
        let methods = profile.group(GroupBy::Method);
        let (tree, to) = merged_tree(profile.tree(), &methods.of_frame);
        let node_of = |node: NodeId| to.get(node as usize).copied().unwrap_or(CallTree::ROOT);
        let mut pieces = Vec::new();
        let in_wall = profile.samples_in_wall();
        for (sample, in_wall) in profile.samples().iter().zip(in_wall) {
            if window.has(sample.time_ns) {
                pieces.push(Piece {
                    thread: sample.thread,
                    node: node_of(sample.node),
                    place: sample.node,
                    context: sample.context,
                    cause: None,
                    time: Time {
                        cpu: sample.weight,
                        wall: if in_wall { sample.weight } else { 0 },
                    },
                });
            }
        }
        let waits = |look: &Look, wall| Piece {
            thread: look.thread,
            node: node_of(look.node),
            place: look.node,
            context: look.context,
            cause: Some(look.cause),
            time: Time { cpu: 0, wall },
        };
        for look in profile.looks() {
            let wall = window.part(look.weight_ns, look.extent());
            if wall > 0 {
                pieces.push(waits(look, wall));
            }
        }
        // If only requests are recorded, a thread may have no wall time.
        let lived = match profile.is_of_requests() {
            true => &[],
            false => &newest.lived[..],
        };
        for (at, wall) in still::waits(&profile, lived, &window, &sum(&pieces)) {
            if let Some(look) = profile.looks().get(at).filter(|_| wall > 0) {
                pieces.push(waits(look, wall));
            }
        }
        Snapshot {
            kinds: kinds(&profile, &methods),
            methods,
            tree,
            pieces,
            from_ns,
            to_ns,
            recent: newest.recent,
            window,
            profile,
        }
    }

    /// The recording's last chunks, limited to the window, for sums.
    pub fn recent(&self) -> &Profile {
        self.recent.as_ref().unwrap_or(&self.profile)
    }

    /// Length of the window; never 0.
    pub fn span_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns).max(1)
    }

    /// A time in the window as an average number of threads or processors.
    pub fn rate(&self, ns: u64) -> f64 {
        ns as f64 / self.span_ns() as f64
    }

    /// The name of a piece's cause.
    pub fn cause(&self, piece: &Piece) -> &str {
        match piece.cause {
            Some(cause) => self.profile.names().text(cause),
            None => RUNNING,
        }
    }

    /// The endpoint that a piece was for.
    pub fn endpoint(&self, piece: &Piece) -> Option<&str> {
        self.profile.endpoint(piece.context?)
    }

    /// All time in the window.
    pub fn total(&self) -> Time {
        sum(&self.pieces)
    }

    /// Whether an event that ended then is in the window.
    pub fn sees(&self, end_ns: u64) -> bool {
        self.window.has(end_ns)
    }

    /// The safepoints in the window.
    pub fn safepoints(&self) -> impl Iterator<Item = &Safepoint> {
        let all = self.profile.safepoints().iter();
        all.filter(|stop| self.sees(stop.time_ns.saturating_add(stop.duration_ns())))
    }

    /// Their sum.
    pub fn stops(&self) -> Stops {
        let mut sum = Stops::default();
        for stop in self.safepoints() {
            sum.add(stop.count, stop.duration_ns());
        }
        sum
    }

    /// Stretches of this kind in the window.
    pub fn stretches(&self, kind: &StretchKind) -> Stops {
        let all = self.profile.stretches().kinds();
        let mut sum = Stops::default();
        for (_, stretches) in all.filter(|(it, _)| it.names == kind.names) {
            for stretch in stretches.iter().filter(|it| self.sees(it.end_ns())) {
                sum.add(1, stretch.duration_ns);
            }
        }
        sum
    }

    /// How many requests have ended in the window.
    pub fn requests(&self) -> u64 {
        let all = self.profile.requests().iter();
        all.filter(|request| self.sees(request.time_ns.saturating_add(request.duration_ns)))
            .map(|request| request.count)
            .sum()
    }
}

fn kinds(profile: &Profile, methods: &Grouped) -> Vec<Kind> {
    let mut kinds = vec![Kind::Native; methods.names.len()];
    for (frame, group) in profile.frames().iter().zip(&methods.of_frame) {
        let method = profile.methods().get(frame.method as usize);
        let class = method.map_or("", |method| profile.names().text(method.class));
        if let Some(kind) = kinds.get_mut(*group as usize)
            && frame.kind.is_java()
        {
            *kind = match is_of_platform(class) {
                true => Kind::Jdk,
                false => Kind::Program,
            };
        }
    }
    kinds
}

fn sum(pieces: &[Piece]) -> Time {
    let mut sum = Time::default();
    pieces.iter().for_each(|piece| sum += &piece.time);
    sum
}

/// Without a lag, all newer data is in the window, too.
fn window(from_ns: u64, to_ns: u64, lag_ns: u64) -> Window {
    Window {
        from_ns,
        to_ns: if lag_ns == 0 { u64::MAX } else { to_ns },
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use dwell_profile::{Builder, text_art};

    /// A look at a thread, for tests.
    pub fn look(builder: &mut Builder, thread: u32, cause: &str, art: &[&str], ms: u64) {
        let frames: Vec<_> = art
            .iter()
            .map(|path| {
                let (class, name) = path.rsplit_once('.').unwrap_or(("", path));
                let method = builder.method(class, name, "");
                builder.frame(method, 0, dwell_profile::FrameKind::C2)
            })
            .collect();
        let (node, cause) = (builder.stack(frames), builder.cause(cause));
        builder.look(Look {
            thread,
            node,
            cause,
            weight_ns: ms * 1_000_000,
            count: 1,
            ..Look::default()
        });
    }

    #[test]
    fn view_is_limited_to_the_window() {
        let mut builder = text_art::builder(
            "weight: 1     2     4     8
                     a.A.x a.A.x a.A.y a.A.x",
        );
        // Samples are 1 ms apart.
        builder.info.duration_ns = 4_000_000;
        let snapshot = Snapshot::new(builder.finish(), 2_000_000);
        assert_eq!((snapshot.from_ns, snapshot.to_ns), (2_000_000, 4_000_000));
        assert_eq!(snapshot.total(), Time { cpu: 12, wall: 12 });
        assert_eq!(snapshot.rate(1_000_000), 0.5);
    }

    /// Nine threads, of which one works. Late and rare events count as well.
    #[test]
    fn wall_time_is_steady_while_the_load_is() {
        const SECOND: u64 = 1_000_000_000;
        let waits_of = |thread: u32, newest_s: u64| {
            // After a second, then once a minute, as the agent writes it.
            let ends = [1, 61, 121].into_iter().filter(move |end| *end <= newest_s);
            ends.map(move |end: u64| (thread, end.saturating_sub(60), end))
        };
        for newest_s in [5, 12, 30, 61, 62, 75, 119] {
            let mut builder = text_art::builder("thread: main\nweight: 0\na.A.x");
            builder.info.start_ns = 0;
            let park = builder.cause("park");
            for thread in 1..9 {
                let number = i64::from(thread) + 5;
                builder.thread(&format!("idle-{thread}"), number, number, false);
                for (thread, from, to) in waits_of(thread, newest_s) {
                    builder.look(Look {
                        time_ns: from * SECOND,
                        duration_ns: (to - from) * SECOND,
                        thread,
                        cause: park,
                        weight_ns: (to - from) * SECOND,
                        count: 1,
                        ..Look::default()
                    });
                }
            }
            for second in 1..=newest_s {
                builder.sample(dwell_profile::Sample {
                    time_ns: second * SECOND - 1,
                    thread: 0,
                    node: 1,
                    weight: SECOND,
                    count: 1,
                    failure: None,
                    context: None,
                });
            }
            builder.info.duration_ns = newest_s * SECOND;
            let lived = (1..=newest_s).map(|second| Lived {
                time_ns: second * SECOND,
                span_ns: SECOND,
                threads: 9,
            });
            let newest = Newest {
                profile: builder.finish(),
                recent: None,
                lived: lived.collect(),
            };
            let snapshot = Snapshot::before(newest, 10 * SECOND, SECOND);
            assert_eq!(snapshot.to_ns, (newest_s - 1) * SECOND);
            let total = snapshot.total();
            let [cpu, wall] = [total.cpu, total.wall].map(|ns| snapshot.rate(ns));
            assert!((cpu - 1.0).abs() < 0.01, "{newest_s}: {cpu}");
            assert!((wall - 9.0).abs() < 0.01, "{newest_s}: {wall}");
        }
    }

    #[test]
    fn look_across_the_window_counts_in_part() {
        let mut builder = text_art::builder("weight: 0\na.A.x");
        builder.info.start_ns = 0;
        builder.info.duration_ns = 300;
        let cause = builder.cause("park");
        builder.look(Look {
            time_ns: 100,
            duration_ns: 150,
            cause,
            weight_ns: 1500,
            count: 1,
            ..Look::default()
        });
        let newest = || Newest {
            profile: builder.clone().finish(),
            recent: None,
            lived: Vec::new(),
        };
        let waited = |window, lag| Snapshot::before(newest(), window, lag).total().wall;
        assert_eq!(waited(300, 100), 1000);
        assert_eq!(waited(50, 100), 500);
        assert_eq!(waited(100, 10), 600);
        assert_eq!(waited(40, 10), 0);
    }
}
