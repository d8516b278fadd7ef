//! The model and the screen on profiles drawn as text; no terminal, no JVM.

use super::screen::{screen, text};
use super::sheet::Target;
use super::state::{Action, Key, State, Tab};
use super::terminal::paint;
use super::window::tests::look;
use super::window::{IDLE, Snapshot};
use dwell_profile::{Builder, Context, Profile, Request, text_art};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

const MS: u64 = 1_000_000;

/// A second of a service: two workers, one of them idle.
fn service() -> Builder {
    let mut builder = text_art::builder(
        "thread: pool-1      pool-1      main
         weight: 300000000   100000000   50000000
                 shop.Web.go shop.Web.go shop.Main.run
                 shop.Sum.up shop.Tax.of java.util.List.sort
                 shop.Sum.up -           libc.so.qsort[native]",
    );
    let web = ["shop.Web.go", "shop.Db.ask", "java.net.Socket.read"];
    look(&mut builder, 0, "socket", &web, 600);
    look(
        &mut builder,
        1,
        "park",
        &["shop.Main.run", "java.X.park"],
        900,
    );
    builder.thread("pool-2", 3, 3, false);
    look(&mut builder, 2, IDLE, &["java.Pool.run"], 1000);
    builder.info.duration_ns = 1000 * MS;
    builder
}

fn with_endpoints() -> Profile {
    let mut builder = service();
    let endpoint = builder.name("GET /cart");
    let context = builder.context(Context {
        endpoint: Some(endpoint),
        ..Context::default()
    });
    let mut profile = builder.clone().finish();
    let mut looks = profile.looks().to_vec();
    for look in looks.iter_mut().filter(|look| look.thread == 0) {
        look.context = Some(context);
        builder.look(*look);
    }
    for (place, duration_ns) in [2, 3, 90].into_iter().enumerate() {
        builder.requests.push(Request {
            time_ns: place as u64,
            duration_ns: duration_ns * MS,
            trace_id: 0,
            local_root_span_id: 0,
            endpoint: Some(endpoint),
            count: 10,
        });
    }
    profile = builder.finish();
    profile
}

fn state_of(profile: Profile, tab: Tab) -> State {
    let mut state = State::new("4711 Shop  JVM 21".to_owned(), tab);
    state.take(Snapshot::new(profile, 10_000 * MS));
    state
}

fn state(tab: Tab) -> State {
    state_of(with_endpoints(), tab)
}

fn press(state: &mut State, keys: &str) {
    for key in keys.chars() {
        let key = match key {
            '>' => Key::Enter,
            '<' => Key::Back,
            'v' => Key::Down,
            other => Key::Char(other),
        };
        assert_eq!(state.press(key), Action::Show);
    }
}

/// The rows as text, fields separated by one blank.
fn rows(state: &State) -> Vec<String> {
    let row = |row: &super::sheet::Row| {
        let cells = row.cells.iter().map(|cell| cell.text.as_str());
        let all: Vec<&str> = cells.chain([row.name.as_str()]).collect();
        all.join(" ")
    };
    state.table.rows.iter().map(row).collect()
}

#[test]
fn recursive_methods_count_once_per_stack() {
    let state = state_of(service().finish(), Tab::Methods);
    assert_eq!(
        rows(&state),
        [
            "30.0 30.0 30.0 30.0 shop.Sum.up",
            "10.0 10.0 10.0 10.0 shop.Tax.of",
            "5.0 5.0 5.0 5.0 libc.so.qsort",
            "- 40.0 - 100.0 shop.Web.go",
            "- 5.0 - 95.0 shop.Main.run",
            "- 5.0 - 5.0 java.util.List.sort",
            "- - 90.0 90.0 java.X.park",
            "- - 60.0 60.0 java.net.Socket.read",
            "- - - 60.0 shop.Db.ask",
        ]
    );
}

#[test]
fn threads_show_their_main_activity() {
    let mut state = state_of(service().finish(), Tab::Threads);
    let one = [
        "40.0 - 100.0 socket 60 % pool-1",
        "5.0 - 95.0 park 95 % main",
    ];
    assert_eq!(rows(&state), one);
    press(&mut state, "i");
    assert_eq!(rows(&state)[2], "- - 100.0 idle-pool 100 % pool-2");
    press(&mut state, "t");
    let groups = [
        "40.0 - 200.0 idle-pool 50 % pool-*",
        "5.0 - 95.0 park 95 % main",
    ];
    assert_eq!(rows(&state), groups);
    press(&mut state, ">");
    assert_eq!(state.page().tab, Tab::Stacks);
    assert_eq!(state.table.rows.len(), 4, "{:?}", rows(&state));
}

#[test]
fn endpoint_opens_causes_and_these_open_stacks() {
    let mut state = state(Tab::Endpoints);
    assert_eq!(
        rows(&state),
        [
            "30.0 3.0 ms 90 ms - 60.0 socket 100 % GET /cart",
            "- - - 45.0 195.0 park 46 % (no endpoint)",
        ]
    );
    press(&mut state, ">");
    assert_eq!(rows(&state), ["60.0 100.0 socket 100 % shop.Db.ask"]);
    press(&mut state, ">");
    assert_eq!(
        rows(&state),
        ["- 60.0 socket Socket.read < Db.ask < Web.go"]
    );
    assert_eq!(state.page().scope.parts(), ["GET /cart", "socket"]);
    press(&mut state, ">");
    let frames = state.page().frames.as_ref().unwrap();
    assert_eq!(frames[0], "java.net.Socket.read  [C2]");
    assert_eq!(frames.len(), 3);
    press(&mut state, "<<1");
    assert_eq!(state.page().tab, Tab::Methods, "the scope stays");
    assert_eq!(state.table.rows.len(), 3);
    press(&mut state, "<<<<");
    assert_eq!(state.page().tab, Tab::Endpoints);
}

#[test]
fn method_opens_its_callers_and_callees() {
    let mut state = state_of(service().finish(), Tab::Methods);
    press(&mut state, "/web");
    assert_eq!(state.table.rows.len(), 1);
    assert_eq!(state.press(Key::Enter), Action::Show);
    press(&mut state, ">c");
    assert_eq!(
        rows(&state),
        [
            "40.0 100.0 shop.Web.go",
            "30.0 30.0 shop.Sum.up",
            "30.0 30.0 shop.Sum.up",
            "10.0 10.0 shop.Tax.of",
            "- 60.0 shop.Db.ask",
            "- 60.0 java.net.Socket.read",
        ]
    );
    let depths: Vec<usize> = state.table.rows.iter().map(|row| row.depth).collect();
    assert_eq!(depths, [0, 1, 1, 1, 1, 1]);
    // The method's own row opens nothing; that of another method opens its callers.
    press(&mut state, ">");
    assert_eq!(state.page().scope.parts(), ["shop.Web.go"]);
    press(&mut state, "v>c");
    assert_eq!(state.page().scope.parts(), ["shop.Sum.up"]);
    assert_eq!(
        rows(&state),
        ["30.0 30.0 shop.Sum.up", "30.0 30.0 shop.Web.go"]
    );
}

#[test]
fn paused_view_does_not_change() {
    let mut state = state_of(service().finish(), Tab::Methods);
    press(&mut state, " ");
    let other = text_art::profile("b.B.b");
    state.take(Snapshot::new(other, MS));
    assert_eq!(state.table.rows.len(), 9);
    assert!(text(&mut state, 80, 3).contains("PAUSED"));
    press(&mut state, " ");
    assert_eq!(state.table.rows.len(), 1);
}

#[test]
fn selection_follows_its_row_when_the_order_changes() {
    let mut state = state_of(service().finish(), Tab::Methods);
    press(&mut state, "v");
    let tax = |state: &State| state.table.rows[state.page().selected].name.clone();
    assert_eq!(tax(&state), "shop.Tax.of");
    press(&mut state, "ssss");
    assert_eq!(state.page().selected, 7, "sorted by name");
    assert_eq!(tax(&state), "shop.Tax.of");
    press(&mut state, "r");
    assert_eq!(state.page().selected, 1);
    state.take(Snapshot::new(text_art::profile("b.B.b"), MS));
    assert_eq!(state.page().selected, 0, "it is gone");
    let Target::Method(method) = &state.table.rows[0].target else {
        panic!("not a method");
    };
    assert_eq!(method, "b.B.b");
}

/// The screen of a terminal of this size.
fn drawn(state: &mut State, width: u16, height: u16, colours: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let draw = |frame: &mut ratatui::Frame<'_>| {
        let lines = screen(state, width.into(), height.into());
        paint(&lines, frame.buffer_mut(), colours);
    };
    terminal.draw(draw).unwrap();
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let row = |y| {
        let cells = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..buffer.area.height).map(row).collect()
}

#[test]
fn screen_has_head_tabs_table_and_keys() {
    let mut state = state(Tab::Methods);
    let shown = lines(&drawn(&mut state, 80, 16, true));
    assert_eq!(shown[0], "dwell top  4711 Shop  JVM 21  last 1 s");
    assert_eq!(shown[1], "CPU   45.0 %  3 threads seen  30.0 requests/s");
    assert_eq!(
        shown[2],
        "wall  running 0.5  socket 1.2  park 0.9  (idle-pool 1.0)"
    );
    assert_eq!(shown[3], "safepoints none  GC pauses none");
    assert!(
        shown[5].starts_with("1 Methods 2 Threads 3 Endpoints"),
        "{}",
        shown[5]
    );
    assert!(shown[6].starts_with("CPUself    CPU% WALLself   WALL% METHOD"));
    assert!(shown[7].ends_with(" shop.Sum.up"), "{}", shown[7]);
    assert!(shown[15].starts_with("q quit"), "{}", shown[15]);
    // A small terminal keeps what matters.
    let small = lines(&drawn(&mut state, 40, 5, true));
    assert!(small[0].starts_with("dwell top"), "{small:?}");
    assert!(small[2].starts_with("CPUself    CPU%"), "{small:?}");
    assert!(small[3].ends_with("shop.Sum.up"), "{small:?}");
}

#[test]
fn disabled_colours_leave_no_colour() {
    let mut state = state(Tab::Causes);
    let has = |buffer: &Buffer| buffer.content.iter().any(|cell| cell.fg != Color::Reset);
    assert!(has(&drawn(&mut state, 80, 24, true)));
    assert!(!has(&drawn(&mut state, 80, 24, false)));
}

#[test]
fn names_of_the_program_cannot_steer_the_terminal() {
    let hostile = "e\u{301}\u{1b}[2J\u{1b}]0;x\u{7}\r\n\t\u{9b}31m\u{202e}名前\u{200b}\u{1f469}";
    let mut builder = Builder::default();
    let method = builder.method(hostile, hostile, "");
    let frame = builder.frame(method, 1, dwell_profile::FrameKind::C2);
    let node = builder.stack([frame]);
    let thread = builder.thread(hostile, 1, 1, false);
    let endpoint = Some(builder.name(hostile));
    let context = builder.context(Context {
        endpoint,
        ..Context::default()
    });
    let cause = builder.cause(hostile);
    builder.look(dwell_profile::Look {
        time_ns: 0,
        duration_ns: 0,
        thread,
        node,
        cause,
        weight_ns: MS,
        count: 1,
        choices: 0,
        context: Some(context),
        detail: None,
        owner: None,
        owner_node: None,
    });
    builder.info.duration_ns = MS;
    let mut state = state_of(builder.finish(), Tab::Methods);
    state.title = hostile.to_owned();
    for keys in ["", "2", "3", "4", "6", ">", "<1>", "/\u{1b}"] {
        press(&mut state, keys);
        let buffer = drawn(&mut state, 80, 24, true);
        let has_control = |text: &str| text.chars().any(char::is_control);
        assert!(
            !buffer.content.iter().any(|cell| has_control(cell.symbol())),
            "{keys}"
        );
        let text = text(&mut state, 60, 5);
        assert!(!text.lines().any(has_control), "{keys}");
        assert!(
            text.lines().all(|line| dwell_report::columns(line) <= 60),
            "{text}"
        );
    }
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        prop::sample::select("123456789 psrit/ctgGjkhq?x名".chars().collect::<Vec<_>>())
            .prop_map(Key::Char),
        prop::sample::select(vec![
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::PageDown,
            Key::Home,
            Key::End,
            Key::Enter,
            Key::Enter,
            Key::Back,
            Key::Delete,
            Key::Tab,
            Key::BackTab,
            Key::Redraw,
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_keys_on_any_screen_are_answered(
        keys in prop::collection::vec(key(), 0..60),
        width in 1u16..130,
        height in 1u16..40,
    ) {
        let mut state = state(Tab::Methods);
        for key in keys {
            state.press(key);
            let buffer = drawn(&mut state, width, height, true);
            prop_assert_eq!(buffer.area.width, width);
        }
        prop_assert!(text(&mut state, width.into(), 5).len() < 20_000);
    }
}
