//! JNI: `JavaVM` and `JNIEnv`.

use crate::{Table, slot};
use core::ffi::{c_char, c_int, c_void};

/// `jobject` and its subtypes: a reference the VM understands.
pub type Object = *mut c_void;
/// `jfieldID`.
pub type FieldId = *mut c_void;

/// `JNI_OK`.
pub const OK: c_int = 0;
/// `JNI_VERSION_1_8`.
pub const VERSION_1_8: c_int = 0x0001_0008;

/// A `JavaVM*`. Calling any method requires that the VM has not been destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct JavaVm(pub *mut Table);

/// A `JNIEnv*`. Calling any method requires that it belongs to the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Env(pub *mut Table);

// SAFETY: the invocation interface may be used from any thread (JNI specification, chapter 5).
unsafe impl Send for JavaVm {}
// SAFETY: as above; the table is never written.
unsafe impl Sync for JavaVm {}

const VM_GET_ENV: usize = 6;
const VM_ATTACH_DAEMON: usize = 7;
const VM_DETACH: usize = 5;

impl JavaVm {
    /// `GetEnv` for the given interface version.
    pub unsafe fn get_env(self, version: c_int) -> Option<*mut Table> {
        type F = unsafe extern "C" fn(*mut Table, *mut *mut Table, c_int) -> c_int;
        let mut env: *mut Table = core::ptr::null_mut();
        // SAFETY: slot 6 of the invocation interface is GetEnv; the VM is alive by contract.
        let code = unsafe { slot::<F>(self.0, VM_GET_ENV)(self.0, &raw mut env, version) };
        (code == OK && !env.is_null()).then_some(env)
    }

    /// `AttachCurrentThreadAsDaemon` under the default name.
    pub unsafe fn attach_daemon(self) -> Option<Env> {
        type F = unsafe extern "C" fn(*mut Table, *mut *mut Table, *mut c_void) -> c_int;
        let mut env: *mut Table = core::ptr::null_mut();
        let none = core::ptr::null_mut();
        // SAFETY: slot 7 is AttachCurrentThreadAsDaemon; null arguments ask for the defaults.
        let code = unsafe { slot::<F>(self.0, VM_ATTACH_DAEMON)(self.0, &raw mut env, none) };
        (code == OK && !env.is_null()).then_some(Env(env))
    }

    /// `DetachCurrentThread`.
    pub unsafe fn detach(self) {
        type F = unsafe extern "C" fn(*mut Table) -> c_int;
        // SAFETY: slot 5 is DetachCurrentThread; the VM is alive by contract.
        unsafe { slot::<F>(self.0, VM_DETACH)(self.0) };
    }
}

const FIND_CLASS: usize = 6;
const EXCEPTION_CLEAR: usize = 17;
const DELETE_LOCAL_REF: usize = 23;
const GET_FIELD_ID: usize = 94;
const GET_LONG_FIELD: usize = 101;
const GET_JAVA_VM: usize = 219;

impl Env {
    /// `FindClass`; an exception is cleared and answers `None`.
    pub unsafe fn find_class(self, name: &core::ffi::CStr) -> Option<Object> {
        type F = unsafe extern "C" fn(*mut Table, *const c_char) -> Object;
        // SAFETY: slot 6 of JNIEnv is FindClass; the name is a C string.
        let class = unsafe { slot::<F>(self.0, FIND_CLASS)(self.0, name.as_ptr()) };
        // SAFETY: same environment.
        unsafe { self.non_null(class) }
    }

    /// `GetFieldID`; an exception is cleared and answers `None`.
    pub unsafe fn field_id(
        self,
        class: Object,
        name: &core::ffi::CStr,
        descriptor: &core::ffi::CStr,
    ) -> Option<FieldId> {
        type F = unsafe extern "C" fn(*mut Table, Object, *const c_char, *const c_char) -> FieldId;
        // SAFETY: slot 94 is GetFieldID; class is a live reference, both texts are C strings.
        let id = unsafe {
            slot::<F>(self.0, GET_FIELD_ID)(self.0, class, name.as_ptr(), descriptor.as_ptr())
        };
        // SAFETY: same environment.
        unsafe { self.non_null(id) }
    }

    /// `GetLongField`.
    pub unsafe fn long_field(self, object: Object, field: FieldId) -> i64 {
        type F = unsafe extern "C" fn(*mut Table, Object, FieldId) -> i64;
        // SAFETY: slot 101 is GetLongField; object and field belong together by contract.
        unsafe { slot::<F>(self.0, GET_LONG_FIELD)(self.0, object, field) }
    }

    /// `DeleteLocalRef`; null is allowed.
    pub unsafe fn delete_local(self, object: Object) {
        type F = unsafe extern "C" fn(*mut Table, Object);
        if !object.is_null() {
            // SAFETY: slot 23 is DeleteLocalRef; object is a local reference of this frame.
            unsafe { slot::<F>(self.0, DELETE_LOCAL_REF)(self.0, object) };
        }
    }

    /// `GetJavaVM`.
    #[must_use]
    pub fn java_vm(self) -> Option<JavaVm> {
        type F = unsafe extern "C" fn(*mut Table, *mut *mut Table) -> c_int;
        let mut vm: *mut Table = core::ptr::null_mut();
        // SAFETY: slot 219 is GetJavaVM; a JNIEnv is only handed out by a VM that is alive.
        let code = unsafe { slot::<F>(self.0, GET_JAVA_VM)(self.0, &raw mut vm) };
        (code == OK && !vm.is_null()).then_some(JavaVm(vm))
    }

    unsafe fn non_null(self, value: *mut c_void) -> Option<*mut c_void> {
        type F = unsafe extern "C" fn(*mut Table);
        if value.is_null() {
            // SAFETY: slot 17 is ExceptionClear, allowed with an exception pending.
            unsafe { slot::<F>(self.0, EXCEPTION_CLEAR)(self.0) };
            return None;
        }
        Some(value)
    }
}
