//! JNI: `JavaVM` and `JNIEnv`.

use crate::{Table, slot};
use core::ffi::{c_char, c_int, c_void};

/// `jobject` and its subtypes: a reference the VM understands.
pub type Object = *mut c_void;
/// `jfieldID`.
pub type FieldId = *mut c_void;

/// Maximum number of UTF-16 units that [`Env::string_start`] returns.
pub const STRING_MAX: usize = 256;
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

/// One method of [`Env::register_natives`]: `JNINativeMethod`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NativeMethod {
    /// Its name, a C string.
    pub name: *const c_char,
    /// Its descriptor, a C string.
    pub descriptor: *const c_char,
    /// The function.
    pub function: *const c_void,
}

const FIND_CLASS: usize = 6;
const NEW_GLOBAL_REF: usize = 21;
const EXCEPTION_CLEAR: usize = 17;
const DELETE_LOCAL_REF: usize = 23;
const IS_SAME_OBJECT: usize = 24;
const GET_OBJECT_CLASS: usize = 31;
const GET_FIELD_ID: usize = 94;
const GET_LONG_FIELD: usize = 101;
const GET_STATIC_METHOD_ID: usize = 113;
const CALL_STATIC_VOID_METHOD_A: usize = 143;
const GET_STATIC_FIELD_ID: usize = 144;
const GET_STATIC_OBJECT_FIELD: usize = 145;
const GET_STATIC_INT_FIELD: usize = 150;
const GET_STATIC_LONG_FIELD: usize = 151;
const GET_STRING_LENGTH: usize = 164;
const GET_STRING_UTF_CHARS: usize = 169;
const RELEASE_STRING_UTF_CHARS: usize = 170;
const REGISTER_NATIVES: usize = 215;
const GET_STRING_REGION: usize = 220;
const NEW_WEAK_GLOBAL_REF: usize = 226;
const DELETE_WEAK_GLOBAL_REF: usize = 227;
const EXCEPTION_CHECK: usize = 228;
const NEW_DIRECT_BYTE_BUFFER: usize = 229;
const GET_JAVA_VM: usize = 219;

impl Env {
    /// `FindClass`; `None` after an exception, which is cleared.
    pub unsafe fn find_class(self, name: &core::ffi::CStr) -> Option<Object> {
        type F = unsafe extern "C" fn(*mut Table, *const c_char) -> Object;
        // SAFETY: slot 6 of JNIEnv is FindClass; the name is a C string.
        let class = unsafe { slot::<F>(self.0, FIND_CLASS)(self.0, name.as_ptr()) };
        // SAFETY: same environment.
        unsafe { self.non_null(class) }
    }

    /// `GetObjectClass`: a local reference.
    pub unsafe fn object_class(self, object: Object) -> Option<Object> {
        type F = unsafe extern "C" fn(*mut Table, Object) -> Object;
        // SAFETY: slot 31 is GetObjectClass; the object is a live reference and not null.
        let class = unsafe { slot::<F>(self.0, GET_OBJECT_CLASS)(self.0, object) };
        // SAFETY: same environment.
        unsafe { self.non_null(class) }
    }

    /// `GetFieldID`; `None` after an exception, which is cleared.
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

    /// `GetStaticFieldID`; `None` after an exception, which is cleared.
    unsafe fn static_field_id(
        self,
        class: Object,
        name: &core::ffi::CStr,
        descriptor: &core::ffi::CStr,
    ) -> Option<FieldId> {
        type F = unsafe extern "C" fn(*mut Table, Object, *const c_char, *const c_char) -> FieldId;
        // SAFETY: slot 144 is GetStaticFieldID; class is a live reference, both texts are C
        // strings.
        let id = unsafe {
            let find = slot::<F>(self.0, GET_STATIC_FIELD_ID);
            find(self.0, class, name.as_ptr(), descriptor.as_ptr())
        };
        // SAFETY: same environment.
        unsafe { self.non_null(id) }
    }

    /// A static field of type `int`; `None` if the class has no such field.
    pub unsafe fn static_int(self, class: Object, name: &core::ffi::CStr) -> Option<i32> {
        type F = unsafe extern "C" fn(*mut Table, Object, FieldId) -> c_int;
        // SAFETY: class is a live reference by contract.
        let field = unsafe { self.static_field_id(class, name, c"I") }?;
        // SAFETY: slot 150 is GetStaticIntField; the field is one of the class, and an int.
        Some(unsafe { slot::<F>(self.0, GET_STATIC_INT_FIELD)(self.0, class, field) })
    }

    /// A static field of type `long`; `None` if the class has no such field.
    pub unsafe fn static_long(self, class: Object, name: &core::ffi::CStr) -> Option<i64> {
        type F = unsafe extern "C" fn(*mut Table, Object, FieldId) -> i64;
        // SAFETY: class is a live reference by contract.
        let field = unsafe { self.static_field_id(class, name, c"J") }?;
        // SAFETY: slot 151 is GetStaticLongField; the field is one of the class, and a long.
        Some(unsafe { slot::<F>(self.0, GET_STATIC_LONG_FIELD)(self.0, class, field) })
    }

    /// `NewGlobalRef` of the value of a static field; `None` if the class has no such field, or it
    /// holds null.
    pub unsafe fn global_of_static(
        self,
        class: Object,
        name: &core::ffi::CStr,
        descriptor: &core::ffi::CStr,
    ) -> Option<Object> {
        type Get = unsafe extern "C" fn(*mut Table, Object, FieldId) -> Object;
        type New = unsafe extern "C" fn(*mut Table, Object) -> Object;
        // SAFETY: class is a live reference by contract, and both texts are C strings.
        let field = unsafe { self.static_field_id(class, name, descriptor) }?;
        // SAFETY: slot 145 is GetStaticObjectField, 21 is NewGlobalRef (null for null); the field
        // is one of the class, and the local reference is given back.
        unsafe {
            let local = slot::<Get>(self.0, GET_STATIC_OBJECT_FIELD)(self.0, class, field);
            let global = slot::<New>(self.0, NEW_GLOBAL_REF)(self.0, local);
            self.delete_local(local);
            self.non_null(global)
        }
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

    /// `NewWeakGlobalRef`; `None` after an exception, which is cleared.
    pub unsafe fn new_weak(self, object: Object) -> Option<Object> {
        type F = unsafe extern "C" fn(*mut Table, Object) -> Object;
        // SAFETY: slot 226 is NewWeakGlobalRef; object is a live reference by contract.
        let weak = unsafe { slot::<F>(self.0, NEW_WEAK_GLOBAL_REF)(self.0, object) };
        // SAFETY: same environment.
        unsafe { self.non_null(weak) }
    }

    /// `DeleteWeakGlobalRef`.
    pub unsafe fn delete_weak(self, weak: Object) {
        type F = unsafe extern "C" fn(*mut Table, Object);
        // SAFETY: slot 227 is DeleteWeakGlobalRef; weak is a weak global reference by contract, and
        // it is not used afterwards.
        unsafe { slot::<F>(self.0, DELETE_WEAK_GLOBAL_REF)(self.0, weak) };
    }

    /// `IsSameObject` with null: whether the object of a weak reference was collected.
    pub unsafe fn is_gone(self, weak: Object) -> bool {
        type F = unsafe extern "C" fn(*mut Table, Object, Object) -> u8;
        let none = core::ptr::null_mut();
        // SAFETY: slot 24 is IsSameObject; weak is a weak global reference by contract.
        unsafe { slot::<F>(self.0, IS_SAME_OBJECT)(self.0, weak, none) != 0 }
    }

    /// `GetStringLength` and `GetStringRegion`: at most `max` UTF-16 units from the start of a
    /// string.
    pub unsafe fn string_start(self, string: Object, max: usize) -> ([u16; STRING_MAX], usize) {
        type Length = unsafe extern "C" fn(*mut Table, Object) -> c_int;
        type Region = unsafe extern "C" fn(*mut Table, Object, c_int, c_int, *mut u16);
        let mut units = [0u16; STRING_MAX];
        // SAFETY: slot 164 is GetStringLength; the string is a live reference by contract.
        let len = unsafe { slot::<Length>(self.0, GET_STRING_LENGTH)(self.0, string) };
        let len = (len.max(0) as usize).min(max).min(STRING_MAX);
        // SAFETY: slot 220 is GetStringRegion(string, start, length, buffer); the range is within
        // the string and the buffer holds it.
        unsafe {
            let region = slot::<Region>(self.0, GET_STRING_REGION);
            region(self.0, string, 0, len as c_int, units.as_mut_ptr());
        }
        (units, len)
    }

    /// `GetStringUTFChars`: a copy of a whole string, in modified UTF-8; `None` for null.
    pub unsafe fn string(self, string: Object) -> Option<std::ffi::CString> {
        type Get = unsafe extern "C" fn(*mut Table, Object, *mut u8) -> *const c_char;
        type Release = unsafe extern "C" fn(*mut Table, Object, *const c_char);
        if string.is_null() {
            return None;
        }
        // SAFETY: slot 169 is GetStringUTFChars, 170 is ReleaseStringUTFChars; the string is a live
        // reference by contract. The text is a C string, which is copied before it is given back.
        unsafe {
            let get = slot::<Get>(self.0, GET_STRING_UTF_CHARS);
            let text = get(self.0, string, core::ptr::null_mut());
            let text = self.non_null(text.cast_mut().cast())?.cast_const().cast();
            let copy = core::ffi::CStr::from_ptr(text).to_owned();
            slot::<Release>(self.0, RELEASE_STRING_UTF_CHARS)(self.0, string, text);
            Some(copy)
        }
    }

    /// `NewDirectByteBuffer`.
    pub unsafe fn direct_buffer(self, memory: *mut c_void, bytes: i64) -> Option<Object> {
        type F = unsafe extern "C" fn(*mut Table, *mut c_void, i64) -> Object;
        // SAFETY: slot 229 is NewDirectByteBuffer; the memory outlives the buffer by contract.
        let buffer = unsafe { slot::<F>(self.0, NEW_DIRECT_BYTE_BUFFER)(self.0, memory, bytes) };
        // SAFETY: same environment.
        unsafe { self.non_null(buffer) }
    }

    /// `RegisterNatives`; false after an exception, which is cleared.
    pub unsafe fn register_natives(self, class: Object, methods: &[NativeMethod]) -> bool {
        type F = unsafe extern "C" fn(*mut Table, Object, *const NativeMethod, c_int) -> c_int;
        // SAFETY: slot 215 is RegisterNatives(class, methods, count); names and descriptors are C
        // strings and the functions fit them by contract.
        let code = unsafe {
            let register = slot::<F>(self.0, REGISTER_NATIVES);
            register(self.0, class, methods.as_ptr(), methods.len() as c_int)
        };
        // SAFETY: same environment.
        unsafe { self.nothing_thrown() && code == OK }
    }

    /// Calls a static method without arguments or result; false after an exception, which is
    /// cleared. A missing method is such an exception.
    pub unsafe fn call_static(self, class: Object, name: &core::ffi::CStr) -> bool {
        type Find =
            unsafe extern "C" fn(*mut Table, Object, *const c_char, *const c_char) -> *mut c_void;
        type Call = unsafe extern "C" fn(*mut Table, Object, *mut c_void, *const i64);
        let descriptor = c"()V";
        // SAFETY: slot 113 is GetStaticMethodID; class is a live reference, both texts are C
        // strings.
        let method = unsafe {
            let find = slot::<Find>(self.0, GET_STATIC_METHOD_ID);
            find(self.0, class, name.as_ptr(), descriptor.as_ptr())
        };
        // SAFETY: same environment.
        let Some(method) = (unsafe { self.non_null(method) }) else {
            return false;
        };
        // SAFETY: slot 143 is CallStaticVoidMethodA; the method has no arguments.
        unsafe {
            let call = slot::<Call>(self.0, CALL_STATIC_VOID_METHOD_A);
            call(self.0, class, method, core::ptr::null());
            self.nothing_thrown()
        }
    }

    unsafe fn nothing_thrown(self) -> bool {
        type Check = unsafe extern "C" fn(*mut Table) -> u8;
        type Clear = unsafe extern "C" fn(*mut Table);
        // SAFETY: slot 228 is ExceptionCheck and 17 ExceptionClear, both allowed at any time.
        unsafe {
            let thrown = slot::<Check>(self.0, EXCEPTION_CHECK)(self.0) != 0;
            if thrown {
                slot::<Clear>(self.0, EXCEPTION_CLEAR)(self.0);
            }
            !thrown
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
