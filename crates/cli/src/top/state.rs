//! The shown page, and the actions of keys. Pure: independent of terminal, clock and target.

use super::drilled::Scope;
use super::sheet::{Row, Sort, Table, Target};
use super::window::{IDLE, RUNNING, Snapshot};
use super::{stacks, stops, tabs};
use std::rc::Rc;

/// Maximum depth of drilling down.
const PAGES_MAX: usize = 64;
/// The longest filter.
const FILTER_MAX: usize = 200;

/// A tab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// Time by method.
    #[default]
    Methods,
    /// Time by thread.
    Threads,
    /// Requests and time by endpoint.
    Endpoints,
    /// Wall time by cause.
    Causes,
    /// Safepoints.
    Stops,
    /// Stacks.
    Stacks,
    /// Callers and callees of a method.
    Calls,
}

impl Tab {
    /// All tabs, in the order of their keys.
    pub const ALL: [Tab; 7] = [
        Tab::Methods,
        Tab::Threads,
        Tab::Endpoints,
        Tab::Causes,
        Tab::Stops,
        Tab::Stacks,
        Tab::Calls,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Tab::Methods => "Methods",
            Tab::Threads => "Threads",
            Tab::Endpoints => "Endpoints",
            Tab::Causes => "Causes",
            Tab::Stops => "Safepoints",
            Tab::Stacks => "Stacks",
            Tab::Calls => "Calls",
        }
    }

    /// The column of the initial order.
    fn first_sort(self, scope: &Scope) -> Sort {
        let waits = scope.cause.as_deref().is_some_and(|cause| cause != RUNNING);
        let column = match self {
            Tab::Methods if waits => 2,
            Tab::Endpoints => 4,
            Tab::Stops if scope.operation.is_none() => 1,
            Tab::Stacks => 1,
            _ => 0,
        };
        Sort {
            column,
            is_reversed: false,
        }
    }
}

/// A key that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// A screen up.
    PageUp,
    /// A screen down.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
    /// Open a row.
    Enter,
    /// Back.
    Back,
    /// Removes a character.
    Delete,
    /// To the next tab.
    Tab,
    /// To the tab before.
    BackTab,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-L.
    Redraw,
}

/// The action after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Show the screen.
    Show,
    /// End.
    Quit,
    /// Release the terminal until the process is continued.
    Suspend,
    /// Redraw the whole screen.
    Redraw,
}

/// A page.
pub struct Page {
    /// The part of the time.
    pub scope: Scope,
    /// The table.
    pub tab: Tab,
    /// The order; `None`: the tab's own.
    sort: Option<Sort>,
    /// Only rows with this text.
    pub filter: String,
    /// The frames of one stack, instead of a table.
    pub frames: Option<Vec<String>>,
    /// Key of the selected row; `None`: the first row.
    chosen: Option<String>,
    /// Its index.
    pub selected: usize,
}

impl Page {
    fn new(scope: Scope, tab: Tab) -> Page {
        Page {
            scope,
            tab,
            sort: None,
            filter: String::new(),
            frames: None,
            chosen: None,
            selected: 0,
        }
    }

    /// The order of the table.
    pub fn sort(&self) -> Sort {
        self.sort
            .unwrap_or_else(|| self.tab.first_sort(&self.scope))
    }

    /// The tabs of this page.
    pub fn tabs(&self) -> &'static [Tab] {
        let all = &Tab::ALL;
        match self.scope.method.is_some() {
            true => all,
            false => all.split_last().map_or(&[], |(_, most)| most),
        }
    }

    fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.sort = None;
        self.chosen = None;
        self.selected = 0;
    }
}

/// The content of the screen.
pub struct State {
    /// The program: pid, name, JVM.
    pub title: String,
    /// The shown snapshot.
    pub snapshot: Option<Rc<Snapshot>>,
    /// The newest snapshot during a pause.
    newest: Option<Rc<Snapshot>>,
    /// Whether the screen is paused.
    pub is_paused: bool,
    /// The drilled pages; never empty.
    pages: Vec<Page>,
    /// The filter that is being typed.
    pub typing: Option<String>,
    /// Whether the keys are explained.
    pub is_help: bool,
    /// Whether idle threads of pools count.
    pub idle: bool,
    /// Whether threads are shown in groups.
    pub grouped: bool,
    /// Whether calls are shown downwards.
    pub callees: bool,
    /// A note for the user.
    pub note: String,
    /// Visible rows of the table.
    pub room: usize,
    /// The rows.
    pub table: Table,
}

impl State {
    /// The first screen.
    pub fn new(title: String, tab: Tab) -> State {
        State {
            title,
            snapshot: None,
            newest: None,
            is_paused: false,
            pages: vec![Page::new(Scope::default(), tab)],
            typing: None,
            is_help: false,
            idle: false,
            grouped: false,
            callees: false,
            note: String::new(),
            room: 10,
            table: Table::default(),
        }
    }

    /// The shown page.
    pub fn page(&self) -> &Page {
        // There is always a page.
        &self.pages[self.pages.len() - 1]
    }

    fn page_mut(&mut self) -> &mut Page {
        let last = self.pages.len() - 1;
        &mut self.pages[last]
    }

    /// Shows a new snapshot, or keeps it until the pause is over.
    pub fn take(&mut self, snapshot: Snapshot) {
        let snapshot = Rc::new(snapshot);
        match self.is_paused {
            true => self.newest = Some(snapshot),
            false => {
                self.snapshot = Some(snapshot);
                self.refresh();
            }
        }
    }

    /// Builds the table.
    pub fn refresh(&mut self) {
        let Some(snapshot) = self.snapshot.clone() else {
            return;
        };
        let page = self.page();
        let (scope, idle) = (&page.scope, self.idle);
        let table = match page.tab {
            Tab::Methods => tabs::methods(&snapshot, scope, idle),
            Tab::Threads => tabs::threads(&snapshot, scope, idle, self.grouped),
            Tab::Endpoints => tabs::endpoints(&snapshot, scope, idle),
            Tab::Causes => tabs::causes(&snapshot, scope, idle),
            Tab::Stops if scope.operation.is_some() => stops::late(&snapshot, scope),
            Tab::Stops => stops::operations(&snapshot),
            Tab::Stacks => stacks::stacks(&snapshot, scope, idle),
            Tab::Calls => stacks::calls(&snapshot, scope, idle, self.callees),
        };
        let filter = self.typing.as_deref().unwrap_or(&page.filter);
        let table = table.arranged(filter, page.sort());
        let chosen = page.chosen.as_ref();
        let place = chosen.and_then(|key| table.rows.iter().position(|row| row.key == *key));
        let last = table.rows.len().saturating_sub(1);
        self.table = table;
        let page = self.page_mut();
        page.selected = match page.chosen {
            Some(_) => place.unwrap_or(page.selected).min(last),
            None => 0,
        };
    }

    /// Number of lines to scroll through.
    fn lines(&self) -> usize {
        let page = self.page();
        page.frames.as_ref().map_or(self.table.rows.len(), Vec::len)
    }

    fn go(&mut self, to: usize) {
        let to = to.min(self.lines().saturating_sub(1));
        let key = self.table.rows.get(to).map(|row| row.key.clone());
        let page = self.page_mut();
        page.selected = to;
        page.chosen = match to {
            0 => None,
            _ => key,
        };
    }

    /// Carries out a key's action.
    pub fn press(&mut self, key: Key) -> Action {
        match key {
            Key::Interrupt => return Action::Quit,
            Key::Suspend => return Action::Suspend,
            Key::Redraw => return Action::Redraw,
            _ => {}
        }
        if self.is_help {
            self.is_help = false;
            return Action::Show;
        }
        if self.typing.is_some() {
            self.type_filter(key);
            return Action::Show;
        }
        let (at, room) = (self.page().selected, self.room.max(2) - 1);
        match key {
            Key::Char('q' | 'Q') => return Action::Quit,
            Key::Up | Key::Char('k') => self.go(at.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.go(at + 1),
            Key::PageUp => self.go(at.saturating_sub(room)),
            Key::PageDown => self.go(at.saturating_add(room)),
            Key::Home | Key::Char('g') => self.go(0),
            Key::End | Key::Char('G') => self.go(usize::MAX),
            Key::Enter => self.drill(),
            Key::Back | Key::Delete => self.back(),
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(-1),
            Key::Char(c) => self.command(c),
            _ => {}
        }
        Action::Show
    }

    fn command(&mut self, c: char) {
        match c {
            ' ' | 'p' => self.pause(),
            's' => self.sort_by_next(),
            'r' => {
                let sort = self.page().sort();
                self.page_mut().sort = Some(Sort {
                    is_reversed: !sort.is_reversed,
                    ..sort
                });
            }
            'i' => self.idle = !self.idle,
            't' => {
                self.grouped = !self.grouped;
                self.page_mut().chosen = None;
            }
            'c' => self.callees = !self.callees,
            '/' if self.page().frames.is_none() => {
                self.typing = Some(self.page().filter.clone());
            }
            '?' | 'h' => self.is_help = true,
            '1'..='9' => {
                let place = c as usize - '1' as usize;
                let page = self.page_mut();
                if let (Some(tab), None) = (page.tabs().get(place), &page.frames) {
                    page.show(*tab);
                }
            }
            _ => return,
        }
        self.refresh();
    }

    fn pause(&mut self) {
        self.is_paused = !self.is_paused;
        if let (false, Some(newest)) = (self.is_paused, self.newest.take()) {
            self.snapshot = Some(newest);
        }
    }

    fn sort_by_next(&mut self) {
        let columns = self.table.columns.len();
        let sort = self.page().sort();
        // The name is the column after the last one.
        self.page_mut().sort = Some(Sort {
            column: (sort.column + 1) % (columns + 1),
            is_reversed: false,
        });
    }

    fn turn(&mut self, step: isize) {
        let page = self.page_mut();
        let tabs = page.tabs();
        let at = tabs.iter().position(|tab| *tab == page.tab).unwrap_or(0);
        let to = (at as isize + step).rem_euclid(tabs.len().max(1) as isize);
        if let (Some(tab), None) = (tabs.get(to as usize), &page.frames) {
            page.show(*tab);
            self.refresh();
        }
    }

    fn type_filter(&mut self, key: Key) {
        let Some(mut text) = self.typing.take() else {
            return;
        };
        match key {
            Key::Enter => {
                let page = self.page_mut();
                page.filter = text;
                page.chosen = None;
            }
            Key::Back => self.page_mut().filter.clear(),
            Key::Delete => {
                text.pop();
                self.typing = Some(text);
            }
            Key::Char(c) => {
                if text.len() < FILTER_MAX && !c.is_control() {
                    text.push(c);
                }
                self.typing = Some(text);
            }
            _ => self.typing = Some(text),
        }
        self.refresh();
    }

    fn back(&mut self) {
        if !self.page().filter.is_empty() {
            self.page_mut().filter.clear();
        } else if self.pages.len() > 1 {
            self.pages.pop();
        }
        self.refresh();
    }

    /// Opens the selected row.
    fn drill(&mut self) {
        let page = self.page();
        let Some(row) = self.table.rows.get(page.selected) else {
            return;
        };
        if page.frames.is_some() || self.pages.len() >= PAGES_MAX {
            return;
        }
        let Some(next) = self.below(row, &page.scope) else {
            return;
        };
        // Remembered, so that the way back leads to this row.
        let key = row.key.clone();
        self.page_mut().chosen = Some(key);
        self.pages.push(next);
        self.refresh();
    }

    fn below(&self, row: &Row, scope: &Scope) -> Option<Page> {
        let mut scope = scope.clone();
        let tab = match &row.target {
            Target::Method(method) => {
                let is_there = self.page().tab == Tab::Calls;
                if is_there && scope.method.as_ref() == Some(method) {
                    return None;
                }
                scope.method = Some(method.clone());
                Tab::Calls
            }
            Target::Who(who) => {
                scope.who = Some(who.clone());
                Tab::Stacks
            }
            Target::Endpoint(endpoint) => {
                scope.endpoint = Some(endpoint.clone());
                Tab::Causes
            }
            Target::Cause(cause) => {
                scope.cause = Some(cause.clone());
                Tab::Stacks
            }
            Target::Operation(operation) => {
                scope.operation = Some(operation.clone());
                Tab::Stops
            }
            Target::Stack(node) => {
                let snapshot = self.snapshot.as_ref()?;
                let frames = stacks::frames(snapshot, &scope, *node);
                let mut page = Page::new(scope, Tab::Stacks);
                page.frames = Some(frames);
                return Some(page);
            }
            Target::Nothing => return None,
        };
        Some(Page::new(scope, tab))
    }

    /// Whether idle threads are left out of the screen.
    pub fn hides_idle(&self) -> bool {
        !self.idle && self.page().scope.cause.as_deref() != Some(IDLE)
    }
}
