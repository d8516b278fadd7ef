//! Names of the VM's stubs by address range, from JVMTI `DynamicCodeGenerated`.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// Maximum number of stubs. A VM makes about 500.
const STUBS_MAX: usize = 20_000;

/// Address ranges and names of generated code that is not a Java method.
#[derive(Default)]
pub struct Stubs(Mutex<BTreeMap<u64, (u64, String)>>);

impl Stubs {
    /// No stubs.
    #[must_use]
    pub const fn new() -> Stubs {
        Stubs(Mutex::new(BTreeMap::new()))
    }

    /// Adds a stub; a newer one replaces an older one at the same address.
    pub fn add(&self, start: u64, len: u64, name: String) {
        if let Ok(mut map) = self.0.lock()
            && map.len() < STUBS_MAX
        {
            map.insert(start, (start.saturating_add(len), name));
        }
    }

    /// The name of the stub around `pc`.
    #[must_use]
    pub fn name(&self, pc: u64) -> Option<String> {
        let map = self.0.lock().ok()?;
        let (_, (end, name)) = map.range(..=pc).next_back()?;
        (pc < *end).then(|| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stub_around_a_pc_is_found() {
        let stubs = Stubs::new();
        stubs.add(100, 10, "a".into());
        stubs.add(120, 10, "b".into());
        assert_eq!(stubs.name(100).as_deref(), Some("a"));
        assert_eq!(stubs.name(109).as_deref(), Some("a"));
        assert_eq!(stubs.name(110), None);
        assert_eq!(stubs.name(125).as_deref(), Some("b"));
        assert_eq!(stubs.name(99), None);
    }
}
