//! Contexts that another library publishes by thread-local records (OTEP 4947), wherever the loader
//! has put its variable.

use dwell_e2e::{ContextView, Jdk, Place, Starter, View, both, each, java_file, turn};
use dwell_profile::{Profile, WallFilter};
use std::collections::BTreeMap;

const TRACE: u128 = 0x0af7651916cd43dd8448eb211c80319c;

/// How the library comes in, so that its variable is somewhere else each time.
#[derive(Clone, Copy, Debug)]
enum Loaded {
    /// At run time: each thread gets a block when it first uses it.
    Later,
    /// At run time, by descriptors: glibc gives it a fixed place if there is room.
    ByDescriptors,
    /// With the program: a fixed place.
    First,
}

fn expected(method: &str, thread: &str) -> Option<ContextView<'static>> {
    let span = match thread {
        "span-1" => 1,
        "span-2" => 2,
        other => panic!("who is {other}?"),
    };
    let published = ContextView {
        trace: TRACE,
        span,
        ..ContextView::default()
    };
    match method {
        "burnAttached" | "sleepAttached" => Some(published),
        "burnInScope" => Some(ContextView {
            trace: TRACE,
            span: 0xa1,
            root: 0xa1,
            endpoint: "GET /a",
            labels: "",
        }),
        "burnInvalid" | "sleepInvalid" | "burnDetached" => None,
        other => panic!("what is {other}?"),
    }
}

fn check_samples(view: &View, is_virtual: bool) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in view.samples() {
        let is = |name: &str| name.starts_with("burn") && name != "burn";
        let frame = sample.under(|frame| is(frame.name) && frame.class.ends_with("ThreadContexts"));
        let Some(name) = frame.map(|frame| frame.name) else {
            continue;
        };
        match name {
            "burnEarly" => continue,
            "burnOnCarrier" => assert_eq!(sample.context(), None, "{}", sample.line()),
            _ => assert_eq!(
                sample.context(),
                expected(name, sample.thread()),
                "{}",
                sample.line()
            ),
        }
        *seen.entry(name).or_default() += 1;
    }
    println!("{seen:?}");
    assert_eq!(seen.len(), 4 + usize::from(is_virtual), "{seen:?}");
}

/// Samples of waiting threads agree. If only requests are sampled, there are no others.
fn check_looks(profile: &Profile, only_requests: bool) {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for wall in profile.wall(&WallFilter::default()) {
        let mut methods = profile.tree().stack(wall.node).map(|frame| {
            let method = profile.frames()[frame as usize].method;
            profile
                .names()
                .text(profile.methods()[method as usize].name)
        });
        let Some(name) = methods.find(|name| matches!(*name, "sleepAttached" | "sleepInvalid"))
        else {
            continue;
        };
        let thread = profile.thread_name(wall.thread);
        let context = wall.context.map(|id| &profile.contexts()[id as usize]);
        let found = context.map(|context| (context.trace_id, context.span_id));
        let right = expected(name, thread).map(|context| (context.trace, context.span));
        assert_eq!(found, right, "{name} on {thread}");
        *seen.entry(name.to_owned()).or_default() += wall.weight.samples;
    }
    println!("{seen:?}");
    assert!(seen.contains_key("sleepAttached"), "{seen:?}");
    assert_eq!(
        seen.contains_key("sleepInvalid"),
        !only_requests,
        "{seen:?}"
    );
    if only_requests {
        // A thread may change between choice and sample. Its next sample shows that it waited for a
        // processor, whatever context that has.
        let is_seen = |cause| profile.names().text(cause) != "runnable";
        let (mut all, mut without) = (0, 0);
        for look in profile.looks().iter().filter(|look| is_seen(look.cause)) {
            all += look.count;
            without += look.count * u64::from(look.context.is_none());
        }
        println!("{without} of {all} looks without a context");
        assert!(all >= 20 && without <= all / 20 + 3, "{without} of {all}");
    }
}

fn check(jdk: &Jdk, loaded: Loaded, options: &str) {
    let place = Place::new("published");
    let file = place.text("out.jfr");
    let is_virtual = jdk.feature >= 21;
    let library = match loaded {
        Loaded::ByDescriptors => "threadctx_desc",
        Loaded::Later | Loaded::First => "threadctx",
    };
    let path = java_file(&format!("libdwelltest_{library}.so"));
    let mut program = Starter::new(jdk, &place, "ThreadContexts")
        .with(&format!(
            "library={library} virtual={}",
            u8::from(is_virtual)
        ))
        .change(|command| {
            if matches!(loaded, Loaded::First) {
                command.env("LD_PRELOAD", &path);
            }
        })
        .agent(&format!(
            "start,cpu=1ms,wall=5ms,wall-threads=1000{options},file={file}"
        ))
        .start();
    let _ = program.work();
    program.tell("stop");
    program.end();
    println!("{loaded:?}{options}");
    let view = View::read(&place.path("out.jfr"));
    check_samples(&view, is_virtual);
    check_looks(
        &Profile::from_recording(view.recording),
        !options.is_empty(),
    );
}

#[test]
fn samples_and_looks_carry_published_contexts() {
    each(&turn(&both()), |jdk| {
        let ways: &[Loaded] = match jdk.feature {
            17 => &[Loaded::Later],
            _ => &[Loaded::Later, Loaded::ByDescriptors, Loaded::First],
        };
        for loaded in ways {
            check(jdk, *loaded, "");
        }
        check(jdk, Loaded::Later, ",filter=context");
    });
}
