//! JVMTI: environment functions and event callbacks.

use crate::jni::{Env, Object};
use crate::{Table, slot};
use core::ffi::{c_char, c_int, c_void};

/// `JVMTI_VERSION_1_1`, supported by every JDK since 6.
pub const VERSION: c_int = 0x3001_0100;

/// `JVMTI_VERSION_11`, the first with sampled allocations.
pub const VERSION_11: c_int = 0x300b_0000;

/// Default interval of the allocation sampler, in bytes
/// (src/hotspot/share/runtime/threadHeapSampler.cpp).
pub const SAMPLING_INTERVAL: c_int = 512 << 10;

/// A `jvmtiError`; 0 is success. Not an enum: later VMs may return new codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Error(pub c_int);

/// A `jvmtiEnv*`. Calling any method requires that the environment is not disposed of and that
/// the phase allows the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Jvmti(pub *mut Table);

// SAFETY: a JVMTI environment may be used from any thread (JVMTI specification, "Environments").
unsafe impl Send for Jvmti {}
// SAFETY: as above; the table is never written.
unsafe impl Sync for Jvmti {}

/// Event numbers in use; a callback's place in the callback table is its number minus 50.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Event {
    /// The VM is initialised.
    VmInit = 50,
    /// The VM is about to die.
    VmDeath = 51,
    /// A thread has started; sent on that thread.
    ThreadStart = 52,
    /// A thread is about to end; sent on that thread.
    ThreadEnd = 53,
    /// A class is about to be used, and not initialised; sent on the thread that needs it.
    ClassPrepare = 56,
    /// A piece of VM code was generated.
    DynamicCodeGenerated = 70,
    /// A thread is about to wait for a monitor that another thread owns; needs a capability. Sent
    /// on the thread, for a virtual thread on its carrier.
    MonitorContendedEnter = 75,
    /// The thread has entered the monitor; as above.
    MonitorContendedEntered = 76,
    /// A garbage collection pause begins; needs a capability. Sent during the stop: the callback
    /// may use neither JNI nor most of JVMTI.
    GarbageCollectionStart = 81,
    /// A garbage collection pause ends; as above.
    GarbageCollectionFinish = 82,
    /// The sampler selected an allocation; needs a capability. Sent on the thread, for a virtual
    /// thread on its carrier.
    SampledObjectAlloc = 86,
}

const EVENT_FIRST: usize = 50;
const CALLBACKS: usize = 39;

/// Callback of `VMInit`, `ThreadStart`, `ThreadEnd`.
pub type ThreadCallback = unsafe extern "C" fn(Jvmti, Env, Object);
/// Callback of `ClassPrepare`: thread, class.
pub type ClassCallback = unsafe extern "C" fn(Jvmti, Env, Object, Object);
/// Callback of `VMDeath`.
pub type DeathCallback = unsafe extern "C" fn(Jvmti, Env);
/// Callback of `GarbageCollectionStart` and `GarbageCollectionFinish`.
pub type CollectionCallback = unsafe extern "C" fn(Jvmti);
/// Callback of `SampledObjectAlloc`: thread, object, class, size.
pub type AllocationCallback = unsafe extern "C" fn(Jvmti, Env, Object, Object, Object, i64);
/// Callback of `MonitorContendedEnter` and `MonitorContendedEntered`: thread, object.
pub type MonitorCallback = unsafe extern "C" fn(Jvmti, Env, Object, Object);
/// Callback of `DynamicCodeGenerated`: name, address, length.
pub type CodeCallback = unsafe extern "C" fn(Jvmti, *const c_char, *const c_void, c_int);

/// `jvmtiEventCallbacks`: one slot for each event from 50 on.
#[repr(C)]
pub struct Callbacks([*const c_void; CALLBACKS]);

impl Default for Callbacks {
    fn default() -> Self {
        Callbacks([core::ptr::null(); CALLBACKS])
    }
}

impl Callbacks {
    fn set(mut self, event: Event, function: *const c_void) -> Self {
        if let Some(slot) = self.0.get_mut(event as usize - EVENT_FIRST) {
            *slot = function;
        }
        self
    }

    /// Sets the callback of a thread event or of `VMInit`.
    #[must_use]
    pub fn thread(self, event: Event, function: ThreadCallback) -> Self {
        self.set(event, function as *const c_void)
    }

    /// Sets the callback of `ClassPrepare`.
    #[must_use]
    pub fn class_prepared(self, function: ClassCallback) -> Self {
        self.set(Event::ClassPrepare, function as *const c_void)
    }

    /// Sets the callback of `VMDeath`.
    #[must_use]
    pub fn death(self, function: DeathCallback) -> Self {
        self.set(Event::VmDeath, function as *const c_void)
    }

    /// Sets the callback of `GarbageCollectionStart`.
    #[must_use]
    pub fn collection_start(self, function: CollectionCallback) -> Self {
        self.set(Event::GarbageCollectionStart, function as *const c_void)
    }

    /// Sets the callback of `GarbageCollectionFinish`.
    #[must_use]
    pub fn collection_finish(self, function: CollectionCallback) -> Self {
        self.set(Event::GarbageCollectionFinish, function as *const c_void)
    }

    /// Sets the callback of `SampledObjectAlloc`.
    #[must_use]
    pub fn allocation(self, function: AllocationCallback) -> Self {
        self.set(Event::SampledObjectAlloc, function as *const c_void)
    }

    /// Sets the callback of `MonitorContendedEnter` or `MonitorContendedEntered`.
    #[must_use]
    pub fn monitor(self, event: Event, function: MonitorCallback) -> Self {
        self.set(event, function as *const c_void)
    }

    /// Sets the callback of `DynamicCodeGenerated`.
    #[must_use]
    pub fn code(self, function: CodeCallback) -> Self {
        self.set(Event::DynamicCodeGenerated, function as *const c_void)
    }
}

/// `jvmtiThreadInfo`.
#[repr(C)]
pub struct ThreadInfo {
    /// Modified UTF-8; free it with [`Jvmti::deallocate`].
    pub name: *mut c_char,
    /// Priority.
    pub priority: c_int,
    /// Whether it is a daemon.
    pub is_daemon: u8,
    /// Local reference to the thread group; null if it has ended.
    pub thread_group: Object,
    /// Local reference to the context class loader.
    pub context_class_loader: Object,
}

/// `jvmtiThreadGroupInfo`.
#[repr(C)]
pub struct ThreadGroupInfo {
    /// Local reference to the parent.
    pub parent: Object,
    /// Modified UTF-8; free it with [`Jvmti::deallocate`].
    pub name: *mut c_char,
    /// Highest priority.
    pub max_priority: c_int,
    /// Whether it is a daemon group.
    pub is_daemon: u8,
}

// Slot = position in the specification minus one.
const SET_EVENT_NOTIFICATION_MODE: usize = 2 - 1;
const GET_ALL_THREADS: usize = 4 - 1;
const GET_THREAD_INFO: usize = 9 - 1;
const GET_THREAD_GROUP_INFO: usize = 14 - 1;
const DEALLOCATE: usize = 47 - 1;
const GET_CLASS_SIGNATURE: usize = 48 - 1;
const GET_LOADED_CLASSES: usize = 78 - 1;
const SET_EVENT_CALLBACKS: usize = 122 - 1;
const GENERATE_EVENTS: usize = 123 - 1;
const DISPOSE_ENVIRONMENT: usize = 127 - 1;
const GET_SYSTEM_PROPERTY: usize = 131 - 1;
const ADD_CAPABILITIES: usize = 142 - 1;
const SET_HEAP_SAMPLING_INTERVAL: usize = 156 - 1;

/// `jvmtiCapabilities`: a field of 128 bits.
type Capabilities = [u32; 4];
/// `can_generate_garbage_collection_events`, bit 31.
const COLLECTION_EVENTS: Capabilities = [1 << 31, 0, 0, 0];
/// `can_generate_monitor_events`, bit 28.
const MONITOR_EVENTS: Capabilities = [1 << 28, 0, 0, 0];
/// `can_generate_sampled_object_alloc_events`, bit 43.
const SAMPLED_ALLOCATIONS: Capabilities = [0, 1 << (43 - 32), 0, 0];

fn check(code: c_int) -> Result<(), Error> {
    if code == 0 { Ok(()) } else { Err(Error(code)) }
}

impl Jvmti {
    /// `SetEventNotificationMode` for all threads.
    pub unsafe fn enable(self, event: Event, on: bool) -> Result<(), Error> {
        type F = unsafe extern "C" fn(*mut Table, c_int, c_int, Object, ...) -> c_int;
        let all = core::ptr::null_mut::<c_void>();
        // SAFETY: position 2 is SetEventNotificationMode(mode, event, thread); null means all.
        check(unsafe {
            slot::<F>(self.0, SET_EVENT_NOTIFICATION_MODE)(
                self.0,
                c_int::from(on),
                event as c_int,
                all,
            )
        })
    }

    /// `AddCapabilities`, for the events of garbage collections. Every HotSpot grants it at any
    /// time and at no cost (src/hotspot/share/prims/jvmtiManageCapabilities.cpp).
    pub unsafe fn add_collection_events(self) -> Result<(), Error> {
        // SAFETY: by the caller.
        unsafe { self.add_capabilities(&COLLECTION_EVENTS) }
    }

    /// `AddCapabilities`, for sampled allocations.
    pub unsafe fn add_sampled_allocations(self) -> Result<(), Error> {
        // SAFETY: by the caller.
        unsafe { self.add_capabilities(&SAMPLED_ALLOCATIONS) }
    }

    /// `AddCapabilities`, for the events of contended monitors. Every HotSpot grants it at any time
    /// (src/hotspot/share/prims/jvmtiManageCapabilities.cpp).
    pub unsafe fn add_monitor_events(self) -> Result<(), Error> {
        // SAFETY: by the caller.
        unsafe { self.add_capabilities(&MONITOR_EVENTS) }
    }

    unsafe fn add_capabilities(self, wanted: &Capabilities) -> Result<(), Error> {
        type F = unsafe extern "C" fn(*mut Table, *const Capabilities) -> c_int;
        // SAFETY: position 142 is AddCapabilities(capabilities).
        check(unsafe { slot::<F>(self.0, ADD_CAPABILITIES)(self.0, wanted) })
    }

    /// `SetHeapSamplingInterval`, in bytes; needs the capability for sampled allocations, and a
    /// table of version 11 or later.
    pub unsafe fn set_sampling_interval(self, bytes: c_int) -> Result<(), Error> {
        type F = unsafe extern "C" fn(*mut Table, c_int) -> c_int;
        // SAFETY: position 156 is SetHeapSamplingInterval(sampling_interval), since 11.
        check(unsafe { slot::<F>(self.0, SET_HEAP_SAMPLING_INTERVAL)(self.0, bytes) })
    }

    /// `SetEventCallbacks`.
    pub unsafe fn set_callbacks(self, callbacks: &Callbacks) -> Result<(), Error> {
        type F = unsafe extern "C" fn(*mut Table, *const Callbacks, c_int) -> c_int;
        let size = size_of::<Callbacks>() as c_int;
        // SAFETY: position 122 is SetEventCallbacks; a longer table than the VM knows is allowed.
        check(unsafe { slot::<F>(self.0, SET_EVENT_CALLBACKS)(self.0, callbacks, size) })
    }

    /// `GenerateEvents`.
    pub unsafe fn generate(self, event: Event) -> Result<(), Error> {
        type F = unsafe extern "C" fn(*mut Table, c_int) -> c_int;
        // SAFETY: position 123 is GenerateEvents.
        check(unsafe { slot::<F>(self.0, GENERATE_EVENTS)(self.0, event as c_int) })
    }

    /// `GetAllThreads`: live platform threads as local references; free with `deallocate`.
    pub unsafe fn all_threads(self) -> Result<(usize, *mut Object), Error> {
        type F = unsafe extern "C" fn(*mut Table, *mut c_int, *mut *mut Object) -> c_int;
        let (mut count, mut threads) = (0, core::ptr::null_mut());
        // SAFETY: position 4 is GetAllThreads; both results are written before they are read.
        check(unsafe {
            slot::<F>(self.0, GET_ALL_THREADS)(self.0, &raw mut count, &raw mut threads)
        })?;
        Ok((count.max(0) as usize, threads))
    }

    /// `GetLoadedClasses`: local references; free the array with `deallocate`.
    pub unsafe fn loaded_classes(self) -> Result<(usize, *mut Object), Error> {
        type F = unsafe extern "C" fn(*mut Table, *mut c_int, *mut *mut Object) -> c_int;
        let (mut count, mut classes) = (0, core::ptr::null_mut());
        // SAFETY: position 78 is GetLoadedClasses; both results are written before they are read.
        check(unsafe {
            slot::<F>(self.0, GET_LOADED_CLASSES)(self.0, &raw mut count, &raw mut classes)
        })?;
        Ok((count.max(0) as usize, classes))
    }

    /// `GetClassSignature` without the generic one: a C string; free it with `deallocate`.
    pub unsafe fn class_signature(self, class: Object) -> Result<*mut c_char, Error> {
        type F =
            unsafe extern "C" fn(*mut Table, Object, *mut *mut c_char, *mut *mut c_char) -> c_int;
        let mut signature = core::ptr::null_mut();
        let none = core::ptr::null_mut();
        // SAFETY: position 48 is GetClassSignature(class, signature, generic); null asks for none.
        check(unsafe {
            slot::<F>(self.0, GET_CLASS_SIGNATURE)(self.0, class, &raw mut signature, none)
        })?;
        Ok(signature)
    }

    /// `GetThreadInfo`.
    pub unsafe fn thread_info(self, thread: Object) -> Result<ThreadInfo, Error> {
        type F = unsafe extern "C" fn(*mut Table, Object, *mut ThreadInfo) -> c_int;
        let mut info = core::mem::MaybeUninit::zeroed();
        // SAFETY: position 9 is GetThreadInfo; it fills the structure.
        check(unsafe { slot::<F>(self.0, GET_THREAD_INFO)(self.0, thread, info.as_mut_ptr()) })?;
        // SAFETY: zero is a valid value of every field, and the VM has filled it.
        Ok(unsafe { info.assume_init() })
    }

    /// `GetThreadGroupInfo`.
    pub unsafe fn group_info(self, group: Object) -> Result<ThreadGroupInfo, Error> {
        type F = unsafe extern "C" fn(*mut Table, Object, *mut ThreadGroupInfo) -> c_int;
        let mut info = core::mem::MaybeUninit::zeroed();
        // SAFETY: position 14 is GetThreadGroupInfo; it fills the structure.
        check(unsafe {
            slot::<F>(self.0, GET_THREAD_GROUP_INFO)(self.0, group, info.as_mut_ptr())
        })?;
        // SAFETY: zero is a valid value of every field, and the VM has filled it.
        Ok(unsafe { info.assume_init() })
    }

    /// `Deallocate`; null is allowed.
    pub unsafe fn deallocate(self, memory: *mut c_void) {
        type F = unsafe extern "C" fn(*mut Table, *mut c_void) -> c_int;
        // SAFETY: position 47 is Deallocate; the memory came from this environment by contract.
        unsafe { slot::<F>(self.0, DEALLOCATE)(self.0, memory) };
    }

    /// `GetSystemProperty`: a C string; free it with `deallocate`.
    pub unsafe fn system_property(self, name: &core::ffi::CStr) -> Result<*mut c_char, Error> {
        type F = unsafe extern "C" fn(*mut Table, *const c_char, *mut *mut c_char) -> c_int;
        let mut value = core::ptr::null_mut();
        // SAFETY: position 131 is GetSystemProperty; the result is written before it is read.
        check(unsafe {
            slot::<F>(self.0, GET_SYSTEM_PROPERTY)(self.0, name.as_ptr(), &raw mut value)
        })?;
        Ok(value)
    }

    /// `DisposeEnvironment`.
    pub unsafe fn dispose(self) {
        type F = unsafe extern "C" fn(*mut Table) -> c_int;
        // SAFETY: position 127 is DisposeEnvironment.
        unsafe { slot::<F>(self.0, DISPOSE_ENVIRONMENT)(self.0) };
    }
}
