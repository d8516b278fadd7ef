//! The table of primitive types, annotations and constant-pool types. Names and field order are the
//! JDK's where the JDK has the type: its tools look fields up by name. No events here.

use super::{Content, FieldDef, TypeDef, TypeKind, id};

const fn field(name: &'static str, content: Content, label: &'static str) -> FieldDef {
    FieldDef {
        name,
        content,
        label,
        description: "",
    }
}

const fn primitive(id: u8, name: &'static str) -> TypeDef {
    TypeDef {
        id,
        name,
        kind: TypeKind::Primitive,
        label: "",
        description: "",
        fields: &[],
    }
}

const fn annotation(id: u8, name: &'static str, fields: &'static [FieldDef]) -> TypeDef {
    TypeDef {
        id,
        name,
        kind: TypeKind::Annotation(false),
        label: "",
        description: "",
        fields,
    }
}

const fn meaning(id: u8, name: &'static str, label: &'static str) -> TypeDef {
    let fields: &[FieldDef] = if id == id::UNSIGNED { &[] } else { VALUE };
    TypeDef {
        id,
        name,
        kind: TypeKind::Annotation(true),
        label,
        description: "",
        fields,
    }
}

const fn structure(
    id: u8,
    name: &'static str,
    label: &'static str,
    fields: &'static [FieldDef],
) -> TypeDef {
    TypeDef {
        id,
        name,
        kind: TypeKind::Structure,
        label,
        description: "",
        fields,
    }
}

const fn simple(
    id: u8,
    name: &'static str,
    label: &'static str,
    fields: &'static [FieldDef],
) -> TypeDef {
    TypeDef {
        id,
        name,
        kind: TypeKind::Simple,
        label,
        description: "",
        fields,
    }
}

const VALUE: &[FieldDef] = &[field("value", Content::Text, "")];
const VALUES: &[FieldDef] = &[field("value", Content::TextArray, "")];

/// All types of our files that are not events.
pub(crate) static TYPES: &[TypeDef] = &[
    primitive(id::LONG, "long"),
    primitive(id::INT, "int"),
    primitive(id::SHORT, "short"),
    primitive(id::BYTE, "byte"),
    primitive(id::DOUBLE, "double"),
    primitive(id::FLOAT, "float"),
    primitive(id::BOOLEAN, "boolean"),
    primitive(id::CHAR, "char"),
    primitive(id::STRING, "java.lang.String"),
    structure(
        id::THREAD,
        "java.lang.Thread",
        "Thread",
        &[
            field("osName", Content::Text, "OS Thread Name"),
            field("osThreadId", Content::Long, "OS Thread Id"),
            field("javaName", Content::Text, "Java Thread Name"),
            field("javaThreadId", Content::Long, "Java Thread Id"),
            field(
                "group",
                Content::Pooled(id::THREAD_GROUP),
                "Java Thread Group",
            ),
            field("virtual", Content::Bool, "Virtual Thread"),
        ],
    ),
    structure(
        id::THREAD_GROUP,
        "jdk.types.ThreadGroup",
        "Thread Group",
        &[
            field("parent", Content::Pooled(id::THREAD_GROUP), "Parent"),
            field("name", Content::Text, "Name"),
        ],
    ),
    structure(
        id::CLASS,
        "java.lang.Class",
        "Java Class",
        &[
            field(
                "classLoader",
                Content::Pooled(id::CLASS_LOADER),
                "Class Loader",
            ),
            field("name", Content::Pooled(id::SYMBOL), "Name"),
            field("package", Content::Pooled(id::PACKAGE), "Package"),
            field("modifiers", Content::Int, "Access Modifiers"),
            field("hidden", Content::Bool, "Hidden"),
        ],
    ),
    structure(
        id::CLASS_LOADER,
        "jdk.types.ClassLoader",
        "Java Class Loader",
        &[
            field("type", Content::Pooled(id::CLASS), "Type"),
            field("name", Content::Pooled(id::SYMBOL), "Name"),
        ],
    ),
    structure(
        id::METHOD,
        "jdk.types.Method",
        "Java Method",
        &[
            field("type", Content::Pooled(id::CLASS), "Type"),
            field("name", Content::Pooled(id::SYMBOL), "Name"),
            field("descriptor", Content::Pooled(id::SYMBOL), "Descriptor"),
            field("modifiers", Content::Int, "Access Modifiers"),
            field("hidden", Content::Bool, "Hidden"),
        ],
    ),
    simple(
        id::SYMBOL,
        "jdk.types.Symbol",
        "Symbol",
        &[field("string", Content::Text, "String")],
    ),
    simple(
        id::THREAD_STATE,
        "jdk.types.ThreadState",
        "Java Thread State",
        &[field("name", Content::Text, "Name")],
    ),
    structure(
        id::MODULE,
        "jdk.types.Module",
        "Module",
        &[
            field("name", Content::Pooled(id::SYMBOL), "Name"),
            field("version", Content::Pooled(id::SYMBOL), "Version"),
            field("location", Content::Pooled(id::SYMBOL), "Location"),
            field(
                "classLoader",
                Content::Pooled(id::CLASS_LOADER),
                "Class Loader",
            ),
        ],
    ),
    structure(
        id::PACKAGE,
        "jdk.types.Package",
        "Package",
        &[
            field("name", Content::Pooled(id::SYMBOL), "Name"),
            field("module", Content::Pooled(id::MODULE), "Module"),
            field("exported", Content::Bool, "Exported"),
        ],
    ),
    structure(
        id::STACK_TRACE,
        "jdk.types.StackTrace",
        "Stacktrace",
        &[
            field("truncated", Content::Bool, "Truncated"),
            field("frames", Content::Array(id::STACK_FRAME), "Stack Frames"),
        ],
    ),
    structure(
        id::STACK_FRAME,
        "jdk.types.StackFrame",
        "",
        &[
            field("method", Content::Pooled(id::METHOD), "Java Method"),
            field("lineNumber", Content::Int, "Line Number"),
            field("bytecodeIndex", Content::Int, "Bytecode Index"),
            field("type", Content::Pooled(id::FRAME_TYPE), "Frame Type"),
        ],
    ),
    simple(
        id::FRAME_TYPE,
        "jdk.types.FrameType",
        "Frame type",
        &[field("description", Content::Text, "Description")],
    ),
    annotation(id::LABEL, "jdk.jfr.Label", VALUE),
    annotation(id::DESCRIPTION, "jdk.jfr.Description", VALUE),
    annotation(id::CATEGORY, "jdk.jfr.Category", VALUES),
    annotation(id::CONTENT_TYPE, "jdk.jfr.ContentType", &[]),
    meaning(id::TIMESTAMP, "jdk.jfr.Timestamp", "Timestamp"),
    meaning(id::TIMESPAN, "jdk.jfr.Timespan", "Timespan"),
    meaning(id::DATA_AMOUNT, "jdk.jfr.DataAmount", "Data Amount"),
    meaning(id::UNSIGNED, "jdk.jfr.Unsigned", "Unsigned Value"),
];
