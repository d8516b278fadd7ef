//! The offsets, addresses and constants that the walker uses, found by name in the VM's own tables.
//!
//! A name that moved between JDKs has one entry per spelling; the first present one wins. Sources
//! for moved fields: hotspot vmStructs.cpp of JDK 8, 11, 17, 21, 25, 26, 27, 28.

use super::objects::Objects;
use super::vmstructs::{self, Place, Symbols, TableError};
use super::zgc::Moves;
use crate::hotspot::machine::Machine;
use crate::memory::Memory;

/// Marks a field that this JDK does not have.
pub const ABSENT: u64 = u64::MAX;

/// The reason why no layout could be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The tables could not be read.
    Table(TableError),
    /// A required field is in none of its known places.
    Missing(&'static str),
}

impl From<TableError> for LayoutError {
    fn from(error: TableError) -> Self {
        LayoutError::Table(error)
    }
}

macro_rules! layout {
    (
        fields { $($(#[$fdoc:meta])* $field:ident: $([$ftype:literal, $fname:literal]),+;)* }
        types { $($(#[$tdoc:meta])* $size:ident: $($tname:literal),+;)* }
        ints { $($(#[$idoc:meta])* $int:ident: $($iname:literal),+;)* }
    ) => {
        /// Offsets in bytes, addresses of statics, sizes and constants; [`ABSENT`] if missing.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Layout {
            $($(#[$fdoc])* pub $field: u64,)*
            $($(#[$tdoc])* pub $size: u64,)*
            $($(#[$idoc])* pub $int: u64,)*
            /// Facts that are not in the tables.
            pub extra: Extra,
        }

        impl Layout {
            /// A layout in which nothing is present.
            pub const EMPTY: Layout = Layout {
                $($field: ABSENT,)* $($size: ABSENT,)* $($int: ABSENT,)* extra: Extra::EMPTY,
            };

            /// Visits every value by name (except those in `extra`).
            pub fn for_each(&self, mut visit: impl FnMut(&'static str, u64)) {
                $(visit(stringify!($field), self.$field);)*
                $(visit(stringify!($size), self.$size);)*
                $(visit(stringify!($int), self.$int);)*
            }

            /// Sets the value with this name; false if the name is unknown.
            pub fn set(&mut self, name: &str, value: u64) -> bool {
                match name {
                    $(stringify!($field) => self.$field = value,)*
                    $(stringify!($size) => self.$size = value,)*
                    $(stringify!($int) => self.$int = value,)*
                    _ => return false,
                }
                true
            }

            fn take_field(&mut self, type_name: &str, field_name: &str, place: Place) {
                let at = match place { Place::Offset(v) | Place::Static(v) => v };
                match (type_name, field_name) {
                    $($(($ftype, $fname))|+ => self.$field = at,)*
                    _ => {}
                }
            }

            fn take_type(&mut self, name: &str, size: u64) {
                match name { $($($tname)|+ => self.$size = size,)* _ => {} }
            }

            fn take_int(&mut self, name: &str, number: i32) {
                match name { $($($iname)|+ => self.$int = i64::from(number) as u64,)* _ => {} }
            }
        }
    };
}

/// Facts that vmStructs does not export; set by [`Layout::load`] or by a caller with better
/// sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    /// Offset of the saved bytecode pointer from the frame pointer in an interpreter frame, in
    /// bytes (negative): frame_x86.hpp, -7 words on 8, -8 words since 9.
    pub interpreter_bcp: i64,
    /// Base of UNSIGNED5: 0 up to JDK 19, 1 since 20 (utilities/unsigned5.hpp).
    pub unsigned5_base: u8,
    /// Whether `CodeBlob::_frame_complete_offset` is 2 bytes wide (23+), not 4.
    pub frame_complete_short: bool,
    /// `StubRoutines::_cont_returnBarrier`, 0 if unknown or before virtual threads.
    pub return_barrier: u64,
    /// Offset of `JavaThread::_cont_entry`, [`ABSENT`] if unknown.
    pub cont_entry: u64,
    /// pc of the return into `enterSpecial`, 0 if unknown.
    pub cont_return_pc: u64,
    /// Field offsets of the frozen part of a virtual thread.
    pub chunk: ChunkLayout,
    /// Facts about Java objects.
    pub objects: Objects,
    /// Location of ZGC's data about moved objects.
    pub moves: Moves,
}

/// Offsets inside `jdk.internal.vm.StackChunk` and `Continuation` objects, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLayout {
    /// `Continuation.tail`.
    pub cont_tail: u64,
    /// `StackChunk.sp` (int, in words from the start of the stack area).
    pub sp: u64,
    /// `StackChunk.size` (int, in words).
    pub size: u64,
    /// `StackChunk.bottom` (int, in words): end of the oldest frame; the arguments that its caller
    /// passed on the stack are beyond it. Absent in early 21, where that end is `argsize` words
    /// before `size`.
    pub bottom: u64,
    /// `StackChunk.argsize` (int, in words), if there is no `bottom`.
    pub argsize: u64,
    /// `StackChunk.parent`.
    pub parent: u64,
    /// Offset of the stack area in the object.
    pub stack: u64,
    /// Whether references are 4 bytes wide.
    pub narrow_oops: bool,
    /// Whether references in the heap carry generational ZGC's colour below the address.
    pub colored_oops: bool,
}

impl Extra {
    /// Only the layout of interpreter frames since JDK 9 is known.
    pub const EMPTY: Extra = Extra {
        interpreter_bcp: -64,
        unsigned5_base: 1,
        frame_complete_short: false,
        return_barrier: 0,
        cont_entry: ABSENT,
        cont_return_pc: 0,
        chunk: ChunkLayout {
            cont_tail: ABSENT,
            sp: ABSENT,
            size: ABSENT,
            bottom: ABSENT,
            argsize: ABSENT,
            parent: ABSENT,
            stack: ABSENT,
            narrow_oops: true,
            colored_oops: false,
        },
        objects: Objects::EMPTY,
        moves: Moves::EMPTY,
    };
}

layout! {
    fields {
        /// The counters for monitoring tools.
        perf_start: ["PerfMemory", "_start"];
        /// The page that compiled code reads to poll (up to 13); address of the static.
        polling_page: ["os", "_polling_page"];
        /// `JavaThread -> OSThread*`.
        thread_osthread: ["JavaThread", "_osthread"], ["Thread", "_osthread"];
        /// Kernel thread id.
        osthread_thread_id: ["OSThread", "_thread_id"];
        /// `pthread_t`.
        osthread_pthread_id: ["OSThread", "_pthread_id"];
        /// `JavaThreadState`.
        thread_state: ["JavaThread", "_thread_state"];
        /// Highest address of the stack.
        thread_stack_base: ["JavaThread", "_stack_base"], ["Thread", "_stack_base"];
        /// Stack size in bytes.
        thread_stack_size: ["JavaThread", "_stack_size"], ["Thread", "_stack_size"];
        /// The embedded `JavaFrameAnchor`.
        thread_anchor: ["JavaThread", "_anchor"];
        /// sp of the last Java frame.
        anchor_sp: ["JavaFrameAnchor", "_last_Java_sp"];
        /// pc of the last Java frame.
        anchor_pc: ["JavaFrameAnchor", "_last_Java_pc"];
        /// fp of the last Java frame.
        anchor_fp: ["JavaFrameAnchor", "_last_Java_fp"];
        /// pc of the compiled code that a poll has stopped, during the beginning of the stub for
        /// it.
        thread_poll_pc: ["JavaThread", "_saved_exception_pc"], ["Thread", "_saved_exception_pc"];
        /// Handle of the platform thread's object.
        thread_obj: ["JavaThread", "_threadObj"];
        /// Handle of the mounted virtual thread's object.
        thread_vthread: ["JavaThread", "_vthread"];
        /// Id of the logical thread that runs here (24+).
        thread_owner_id: ["JavaThread", "_monitor_owner_id"];
        /// `ContinuationEntry*` (25.0.3+).
        thread_cont_entry: ["JavaThread", "_cont_entry"];
        /// Return pc into enterSpecial (25.0.3+); address of the static.
        cont_entry_return_pc: ["ContinuationEntry", "_return_pc"];
        /// The return barrier (27+); address of the static.
        cont_return_barrier: ["StubRoutines", "_cont_returnBarrier"];
        /// `ObjectMonitor*` that the thread is about to enter.
        thread_pending_monitor: ["JavaThread", "_current_pending_monitor"],
            ["Thread", "_current_pending_monitor"];
        /// `ObjectMonitor*` that the thread waits on (`Object.wait`).
        thread_waiting_monitor: ["JavaThread", "_current_waiting_monitor"],
            ["Thread", "_current_waiting_monitor"];
        /// The embedded stack of fast-locked objects (21+).
        thread_lock_stack: ["JavaThread", "_lock_stack"];
        /// Offset in the `JavaThread` after its last entry.
        lock_stack_top: ["LockStack", "_top"];
        /// Its first entry.
        lock_stack_base: ["LockStack", "_base[0]"];
        /// The owner of a monitor: a `JavaThread*`, an address in its stack, or (24+) its id.
        monitor_owner: ["ObjectMonitor", "_owner"];
        /// The object: a reference (8), later a handle.
        monitor_object: ["ObjectMonitor", "_object"];
        /// Current list of threads (9+); address of the static.
        threads_list: ["ThreadsSMRSupport", "_java_thread_list"];
        /// Number of threads in a `ThreadsList`.
        threads_list_length: ["ThreadsList", "_length"];
        /// The threads of a `ThreadsList`.
        threads_list_threads: ["ThreadsList", "_threads"];
        /// First thread (8); address of the static.
        threads_first: ["Threads", "_thread_list"];
        /// Next thread (8).
        thread_next: ["JavaThread", "_next"], ["Thread", "_next"];
        /// The single heap (8); address of the static.
        code_heap: ["CodeCache", "_heap"];
        /// The heaps (9+); address of the static.
        code_heaps: ["CodeCache", "_heaps"];
        /// Length of a `GrowableArray`.
        array_len: ["GenericGrowableArray", "_len"], ["GrowableArrayBase", "_len"];
        /// Elements of a `GrowableArray`.
        array_data: ["GrowableArray<int>", "_data"];
        /// Embedded `VirtualSpace` of the code.
        heap_memory: ["CodeHeap", "_memory"];
        /// Embedded `VirtualSpace` of the segment map.
        heap_segmap: ["CodeHeap", "_segmap"];
        /// Segment size, as a power of two.
        heap_log2_segment: ["CodeHeap", "_log2_segment_size"];
        /// Lowest reserved address.
        space_low_boundary: ["VirtualSpace", "_low_boundary"];
        /// Highest reserved address.
        space_high_boundary: ["VirtualSpace", "_high_boundary"];
        /// Whether a block is in use.
        block_used: ["HeapBlock::Header", "_used"];
        /// `const char*` name.
        blob_name: ["CodeBlob", "_name"];
        /// Total size in bytes.
        blob_size: ["CodeBlob", "_size"];
        /// Frame size in words.
        blob_frame_size: ["CodeBlob", "_frame_size"];
        /// Code offset at which the frame is complete.
        blob_frame_complete: ["CodeBlob", "_frame_complete_offset"];
        /// Start of the code as a pointer (9-22).
        blob_code_begin: ["CodeBlob", "_code_begin"];
        /// Start of the code as an offset (8, 23+).
        blob_code_offset: ["CodeBlob", "_code_offset"];
        /// Start of the data as an offset.
        blob_data_offset: ["CodeBlob", "_data_offset"];
        /// Offset of the `Klass*` in `java.lang.Class` objects; address of the static.
        mirror_klass: ["java_lang_Class", "_klass_offset"];
        /// Start of the references that are constants of the code (up to 22; later at the data's
        /// start).
        nmethod_oops_offset: ["nmethod", "_oops_offset"];
        /// Mutable data (25+).
        blob_mutable_data: ["CodeBlob", "_mutable_data"];
        /// Bytes of relocations before the metadata (25+).
        blob_relocation_size: ["CodeBlob", "_relocation_size"];
        /// `Method*` of compiled code.
        nmethod_method: ["nmethod", "_method"], ["CompiledMethod", "_method"];
        /// Compilation level: 1-3 C1, 4 C2.
        nmethod_comp_level: ["nmethod", "_comp_level"];
        /// Identity of the compilation.
        nmethod_compile_id: ["nmethod", "_compile_id"];
        /// Frame slot of the original pc after deoptimisation, in bytes.
        nmethod_orig_pc_offset: ["nmethod", "_orig_pc_offset"];
        /// Start of the `PcDesc`s.
        nmethod_scopes_pcs_offset: ["nmethod", "_scopes_pcs_offset"];
        /// Start of the data after the `PcDesc`s up to 22.
        nmethod_dependencies_offset: ["nmethod", "_dependencies_offset"];
        /// Start of the scope stream as an offset (8, 23+).
        nmethod_scopes_data_offset: ["nmethod", "_scopes_data_offset"];
        /// Start of the scope stream as a pointer (9-22).
        nmethod_scopes_data_begin: ["CompiledMethod", "_scopes_data_begin"];
        /// Start of the metadata (up to 24).
        nmethod_metadata_offset: ["nmethod", "_metadata_offset"];
        /// Malloc'ed immutable data (23+).
        nmethod_immutable_data: ["nmethod", "_immutable_data"];
        /// Size of the immutable data.
        nmethod_immutable_data_size: ["nmethod", "_immutable_data_size"];
        /// Deoptimisation handler as an offset from the blob (8).
        nmethod_deoptimize_offset: ["nmethod", "_deoptimize_offset"];
        /// Deoptimisation handler as a pointer (9-22).
        nmethod_deopt_handler_begin: ["CompiledMethod", "_deopt_handler_begin"];
        /// The same for method handle call sites (9-22).
        nmethod_deopt_mh_handler_begin: ["CompiledMethod", "_deopt_mh_handler_begin"];
        /// Deoptimisation handler as a code offset (23-25).
        nmethod_deopt_handler_offset: ["nmethod", "_deopt_handler_offset"];
        /// The same for method handle call sites (23-25).
        nmethod_deopt_mh_handler_offset: ["nmethod", "_deopt_mh_handler_offset"];
        /// Entry of the deoptimisation handler as a code offset (26+).
        nmethod_deopt_entry_offset: ["nmethod", "_deopt_handler_entry_offset"];
        /// Offset of the code a `PcDesc` describes.
        pcdesc_pc_offset: ["PcDesc", "_pc_offset"];
        /// Start of its scope in the scope stream.
        pcdesc_scope_offset: ["PcDesc", "_scope_decode_offset"];
        /// The interpreter's `StubQueue*`; address of the static.
        interpreter_code: ["AbstractInterpreter", "_code"];
        /// Start of a `StubQueue`'s buffer.
        stub_queue_buffer: ["StubQueue", "_stub_buffer"];
        /// Its size in bytes.
        stub_queue_limit: ["StubQueue", "_buffer_limit"];
        /// Return address of calls from native into Java; address of the static.
        call_stub_return: ["StubRoutines", "_call_stub_return_address"];
        /// Anchor saved in a `JavaCallWrapper`.
        call_wrapper_anchor: ["JavaCallWrapper", "_anchor"];
        /// `ConstMethod*`.
        method_const: ["Method", "_constMethod"];
        /// Access flags of a method.
        method_access_flags: ["Method", "_access_flags"];
        /// `ConstantPool*`.
        const_constants: ["ConstMethod", "_constants"];
        /// Flags: bit 0 says that a line table follows the bytecodes.
        const_flags: ["ConstMethod", "_flags"];
        /// Only in 21+, whose UNSIGNED5 base is 1.
        const_flags_21: ["ConstMethod", "_flags._flags"];
        /// Size of the bytecodes.
        const_code_size: ["ConstMethod", "_code_size"];
        /// Size of the whole `ConstMethod` in words.
        const_total_size: ["ConstMethod", "_constMethod_size"];
        /// Constant pool index of the name.
        const_name_index: ["ConstMethod", "_name_index"];
        /// Constant pool index of the descriptor.
        const_signature_index: ["ConstMethod", "_signature_index"];
        /// Number of the method in its class.
        const_method_idnum: ["ConstMethod", "_method_idnum"];
        /// Class of a constant pool.
        pool_holder: ["ConstantPool", "_pool_holder"];
        /// Number of entries.
        pool_length: ["ConstantPool", "_length"];
        /// Name of a class.
        klass_name: ["Klass", "_name"];
        /// Superclass of a class.
        klass_super: ["Klass", "_super"];
        /// Constants of a class.
        klass_constants: ["InstanceKlass", "_constants"];
        /// Fields of a class, as shorts (up to 20).
        klass_fields: ["InstanceKlass", "_fields"];
        /// The same as a stream of numbers (21+).
        klass_field_stream: ["InstanceKlass", "_fieldinfo_stream"];
        /// Constant pool index of the source file's name (up to 14).
        klass_source: ["InstanceKlass", "_source_file_name_index"];
        /// The same (15+).
        pool_source: ["ConstantPool", "_source_file_name_index"];
        /// Handle of the `Class` object.
        klass_mirror: ["Klass", "_java_mirror"];
        /// Next class of the same loader.
        klass_next_link: ["Klass", "_next_link"];
        /// The class loaders; address of the static.
        loaders_head: ["ClassLoaderDataGraph", "_head"];
        /// The next older loader.
        loader_next: ["ClassLoaderData", "_next"];
        /// The first class of a loader.
        loader_classes: ["ClassLoaderData", "_klasses"];
        /// Base of compressed class pointers; address of the static.
        narrow_klass_base: ["CompressedKlassPointers", "_narrow_klass._base"],
            ["CompressedKlassPointers", "_base"], ["Universe", "_narrow_klass._base"];
        /// Shift of compressed class pointers; address of the static.
        narrow_klass_shift: ["CompressedKlassPointers", "_narrow_klass._shift"],
            ["CompressedKlassPointers", "_shift"], ["Universe", "_narrow_klass._shift"];
        /// Instance size, among others.
        klass_layout_helper: ["Klass", "_layout_helper"];
        /// Length of a symbol, two bytes (8: `_length`, 9+: the upper half of a word).
        symbol_length: ["Symbol", "_length"];
        /// Length and reference count in one word (10-16).
        symbol_length_and_refcount: ["Symbol", "_length_and_refcount"];
        /// Bytes of a symbol.
        symbol_body: ["Symbol", "_body"], ["Symbol", "_body[0]"];
        /// Base of compressed references; address of the static.
        narrow_oop_base: ["CompressedOops", "_narrow_oop._base"], ["CompressedOops", "_base"],
            ["Universe", "_narrow_oop._base"];
        /// Shift of compressed references; address of the static.
        narrow_oop_shift: ["CompressedOops", "_narrow_oop._shift"], ["CompressedOops", "_shift"],
            ["Universe", "_narrow_oop._shift"];
        /// A mask of coloured references: only generational ZGC (21+) has it; address of a pointer.
        z_load_good: ["ZGlobalsForVMStructs", "_ZPointerLoadGoodMask"];
        /// The heap; address of the static.
        collected_heap: ["Universe", "_collectedHeap"];
        /// Number of collections so far, with the one that runs: four bytes.
        heap_collections: ["CollectedHeap", "_total_collections"];
        /// ZGC's globals; address of the static.
        z_globals: ["ZGlobalsForVMStructs", "_instance_p"];
        /// Address of the mask of offsets in the heap.
        z_offset_mask: ["ZGlobalsForVMStructs", "_ZAddressOffsetMask"];
        /// Address of the mask of references that need a barrier.
        z_bad_mask: ["ZGlobalsForVMStructs", "_ZPointerLoadBadMask"];
        /// The embedded `ZHeap`.
        z_heap: ["ZCollectedHeap", "_heap"];
        /// The embedded `ZPageAllocator`.
        z_page_allocator: ["ZHeap", "_page_allocator"];
        /// The embedded `ZPageTable`.
        z_page_table: ["ZHeap", "_page_table"];
        /// The array of a map by granules.
        z_granule_map: ["ZGranuleMapForForwarding", "_map"];
        /// The range that was evacuated.
        z_forwarding_range: ["ZForwarding", "_virtual"];
        /// Start of a range, as an offset in the heap.
        z_range_start: ["ZVirtualMemory", "_start"];
        /// Alignment of the objects there, as a power of two.
        z_forwarding_shift: ["ZForwarding", "_object_alignment_shift"];
        /// The embedded head of the entries, which follow the `ZForwarding`.
        z_forwarding_entries: ["ZForwarding", "_entries"];
        /// Number of entries.
        z_entries_length: ["ZAttachedArrayForForwarding", "_length"];
        /// Globals of the non-generational ZGC, by its name in 21 to 23; address of the static.
        x_globals: ["XGlobalsForVMStructs", "_instance_p"];
        /// Address of the mask of offsets in its heap.
        x_offset_mask: ["XGlobalsForVMStructs", "_XAddressOffsetMask"];
        /// Address of the bit that current references have (up to 20: ZGC's).
        x_good_mask: ["XGlobalsForVMStructs", "_XAddressGoodMask"],
            ["ZGlobalsForVMStructs", "_ZAddressGoodMask"];
        /// Address of the mask of bits that current references do not have.
        x_bad_mask: ["XGlobalsForVMStructs", "_XAddressBadMask"],
            ["ZGlobalsForVMStructs", "_ZAddressBadMask"];
        /// The embedded heap.
        x_heap: ["XCollectedHeap", "_heap"];
        /// Its embedded table of moved objects.
        x_forwarding_table: ["XHeap", "_forwarding_table"], ["ZHeap", "_forwarding_table"];
        /// The map in that.
        x_table_map: ["XForwardingTable", "_map"], ["ZForwardingTable", "_map"];
        /// The array of a map by granules.
        x_granule_map: ["XGranuleMapForForwarding", "_map"];
        /// The range that was evacuated.
        x_forwarding_range: ["XForwarding", "_virtual"];
        /// Start of a range, as an offset in the heap.
        x_range_start: ["XVirtualMemory", "_start"];
        /// Alignment of the objects there, as a power of two.
        x_forwarding_shift: ["XForwarding", "_object_alignment_shift"];
        /// The embedded head of the entries, which follow the `XForwarding`.
        x_forwarding_entries: ["XForwarding", "_entries"];
        /// Number of entries.
        x_entries_length: ["XAttachedArrayForForwarding", "_length"];
        /// The JVM's flags; address of the static.
        flags_table: ["JVMFlag", "flags"], ["Flag", "flags"];
        /// Their number; address of the static.
        flags_count: ["JVMFlag", "numFlags"], ["Flag", "numFlags"];
        /// Name of a flag.
        flag_name: ["JVMFlag", "_name"], ["Flag", "_name"];
        /// Address of a flag's value.
        flag_addr: ["JVMFlag", "_addr"], ["Flag", "_addr"];
    }
    types {
        /// `sizeof(HeapBlock)`.
        sizeof_heap_block: "HeapBlock";
        /// `sizeof(PcDesc)`.
        sizeof_pcdesc: "PcDesc";
        /// `sizeof(ConstMethod)`: where the bytecodes start.
        sizeof_const_method: "ConstMethod";
        /// `sizeof(ConstantPool)`: where the entries start.
        sizeof_constant_pool: "ConstantPool";
        /// `sizeof(nmethod)`.
        sizeof_nmethod: "nmethod";
        /// `sizeof(JVMFlag)` (8: `Flag`).
        sizeof_flag: "JVMFlag", "Flag";
        /// `sizeof(CodeBlob)`.
        sizeof_code_blob: "CodeBlob";
        /// `sizeof(ZHeap)`.
        sizeof_z_heap: "ZHeap";
        /// `sizeof(ZForwarding)`.
        sizeof_z_forwarding: "ZForwarding";
        /// `sizeof(XForwarding)`.
        sizeof_x_forwarding: "XForwarding";
    }
    ints {
        /// `JavaThreadState` of a thread that runs Java code (8; 4 in JDK 28).
        state_in_java: "_thread_in_Java";
        /// In native code.
        state_in_native: "_thread_in_native";
        /// In the VM.
        state_in_vm: "_thread_in_vm";
        /// Blocked in the VM.
        state_blocked: "_thread_blocked";
        /// Number of the flag for a field with a constant value (21+).
        field_initialized: "FieldInfo::FieldFlags::_ff_initialized";
        /// Number of the flag for a field with a generic signature (21+).
        field_generic: "FieldInfo::FieldFlags::_ff_generic";
        /// Number of the flag for a contended field (21+).
        field_contended: "FieldInfo::FieldFlags::_ff_contended";
        /// Parts of a location in debug information: the shift of the offset.
        location_offset_shift: "Location::OFFSET_SHIFT";
        /// The bits of its type.
        location_type_mask: "Location::TYPE_MASK";
        /// The bit for a register.
        location_where_mask: "Location::WHERE_MASK";
        /// A reference.
        location_oop: "Location::oop";
        /// A compressed reference.
        location_narrow_oop: "Location::narrowoop";
        /// Word offset of the call wrapper in an entry frame.
        entry_call_wrapper: "frame::entry_frame_call_wrapper_offset";
    }
}

/// Whether a value of [`Layout`] is present.
#[must_use]
pub const fn present(value: u64) -> bool {
    value != ABSENT
}

impl Layout {
    /// Reads the tables of the VM and derives the values that are not in them.
    ///
    /// # Errors
    /// [`LayoutError`] if a table cannot be read or a required field is missing.
    pub fn load<M: Memory, S: Symbols>(
        machine: impl Machine,
        mem: &M,
        symbols: &S,
    ) -> Result<Layout, LayoutError> {
        let mut layout = Layout::EMPTY;
        vmstructs::for_each_field(mem, symbols, |f| {
            layout.take_field(f.type_name.as_str(), f.field_name.as_str(), f.place);
            if f.field_name.as_str() == "_frame_complete_offset" {
                let short = matches!(f.type_string.as_str(), "int16_t" | "u2" | "uint16_t");
                layout.extra.frame_complete_short = short;
            }
        })?;
        vmstructs::for_each_type(mem, symbols, |name, size| layout.take_type(name, size))?;
        vmstructs::for_each_int(mem, symbols, |name, number| layout.take_int(name, number))?;
        if !present(layout.entry_call_wrapper) {
            layout.entry_call_wrapper = machine.call_wrapper_slot() as u64;
        }
        // JDK 9 replaced `_heap`.
        layout.extra.interpreter_bcp = machine.bcp_slot(present(layout.code_heaps));
        layout.derive(mem, symbols)?;
        layout.check()?;
        Ok(layout)
    }

    fn derive<M: Memory, S: Symbols>(&mut self, mem: &M, symbols: &S) -> Result<(), LayoutError> {
        self.extra.unsigned5_base = u8::from(present(self.const_flags_21));
        if !present(self.const_flags) {
            self.const_flags = self.const_flags_21;
        }
        let barrier = if present(self.cont_return_barrier) {
            Some(self.cont_return_barrier)
        } else {
            symbols.address("_ZN12StubRoutines19_cont_returnBarrierE")
        };
        self.extra.return_barrier = barrier.and_then(|at| mem.word(at).ok()).unwrap_or(0);
        self.extra.cont_entry = self.thread_cont_entry;
        if present(self.cont_entry_return_pc) {
            self.extra.cont_return_pc = mem.word(self.cont_entry_return_pc).unwrap_or(0);
        } else if let Some(at) = symbols.address("_ZN17ContinuationEntry10_return_pcE") {
            self.extra.cont_return_pc = mem.word(at).unwrap_or(0);
        }
        Ok(())
    }

    /// The name of the first missing field among the required ones.
    fn check(&self) -> Result<(), LayoutError> {
        let needed = [
            (self.thread_osthread, "JavaThread._osthread"),
            (self.osthread_thread_id, "OSThread._thread_id"),
            (self.thread_state, "JavaThread._thread_state"),
            (self.thread_anchor, "JavaThread._anchor"),
            (self.anchor_sp, "JavaFrameAnchor._last_Java_sp"),
            (self.anchor_pc, "JavaFrameAnchor._last_Java_pc"),
            (self.anchor_fp, "JavaFrameAnchor._last_Java_fp"),
            (self.heap_memory, "CodeHeap._memory"),
            (self.heap_segmap, "CodeHeap._segmap"),
            (self.heap_log2_segment, "CodeHeap._log2_segment_size"),
            (self.space_low_boundary, "VirtualSpace._low_boundary"),
            (self.space_high_boundary, "VirtualSpace._high_boundary"),
            (self.sizeof_heap_block, "sizeof(HeapBlock)"),
            (self.blob_name, "CodeBlob._name"),
            (self.blob_size, "CodeBlob._size"),
            (self.blob_frame_size, "CodeBlob._frame_size"),
            (self.blob_frame_complete, "CodeBlob._frame_complete_offset"),
            (self.nmethod_method, "nmethod._method"),
            (self.nmethod_comp_level, "nmethod._comp_level"),
            (self.nmethod_compile_id, "nmethod._compile_id"),
            (self.nmethod_scopes_pcs_offset, "nmethod._scopes_pcs_offset"),
            (self.pcdesc_pc_offset, "PcDesc._pc_offset"),
            (self.pcdesc_scope_offset, "PcDesc._scope_decode_offset"),
            (self.sizeof_pcdesc, "sizeof(PcDesc)"),
            (self.method_const, "Method._constMethod"),
            (self.const_constants, "ConstMethod._constants"),
            (self.const_code_size, "ConstMethod._code_size"),
            (self.const_name_index, "ConstMethod._name_index"),
            (self.const_signature_index, "ConstMethod._signature_index"),
            (self.sizeof_const_method, "sizeof(ConstMethod)"),
            (self.sizeof_constant_pool, "sizeof(ConstantPool)"),
            (self.pool_holder, "ConstantPool._pool_holder"),
            (self.klass_name, "Klass._name"),
            (self.symbol_body, "Symbol._body"),
            (
                self.call_stub_return,
                "StubRoutines._call_stub_return_address",
            ),
            (self.interpreter_code, "AbstractInterpreter._code"),
            (self.stub_queue_buffer, "StubQueue._stub_buffer"),
            (self.state_in_java, "_thread_in_Java"),
        ];
        match needed.iter().find(|(value, _)| !present(*value)) {
            Some((_, name)) => Err(LayoutError::Missing(name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
