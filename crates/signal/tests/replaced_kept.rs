//! An engine that must keep its signal reports that another handler has replaced ours.

use dwell_signal::{Config, Errno, InitError, move_if_replaced, sys};

#[test]
fn engine_that_keeps_its_signal_reports_that_it_is_taken() {
    let config = Config {
        signal: Some(50),
        keeps_signal: true,
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    let ours = sys::sigaction(50, Some(&sys::KernelAction::default())).unwrap();
    let refused = Err(InitError::Signal(50, Errno(libc::EBUSY)));
    assert_eq!(move_if_replaced(engine), refused);
    assert_eq!((engine.signal(), engine.is_replaced()), (50, true));
    sys::sigaction(50, Some(&ours)).unwrap();
    assert_eq!(move_if_replaced(engine), Ok(false));
    assert!(!engine.is_replaced());
}
