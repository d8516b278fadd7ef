// Reads a file for the Firefox Profiler by the rules of its types, independently of the writer.
// Fails on a column of another length, an index outside of its table, or times out of order.
// Prints a line for each thread and cause: name, cause, nanoseconds; then the markers by name.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

function check(holds, text) {
    if (!holds) {
        throw new Error(text);
    }
}

/** The columns of a table, whose lengths must agree. */
function table(value, columns, name) {
    check(Number.isInteger(value.length) && !Array.isArray(value), `${name}: no length`);
    for (const column of columns) {
        check(value[column]?.length === value.length, `${name}.${column}: another length`);
    }
    return value;
}

function indexes(values, length, name, none) {
    for (const value of values) {
        const isIndex = Number.isInteger(value) && value >= 0 && value < length;
        check(isIndex || (none !== undefined && value === none), `${name}: ${value} of ${length}`);
    }
}

const profile = JSON.parse(gunzipSync(readFileSync(process.argv[2])).toString());
const { meta, libs, shared, threads } = profile;
check(meta.preprocessedProfileVersion === 60, "another version");
check(meta.interval > 0 && meta.startTime > 0, "no times");
check(meta.categories.some((it) => it.color === "grey"), "no default category");

const texts = shared.stringArray;
check(texts.every((it) => typeof it === "string"), "not a text");
const sources = table(shared.sources, ["uuid", "filename"], "sources");
const stacks = table(shared.stackTable, ["frame", "prefix"], "stackTable");
const frames = table(
    shared.frameTable,
    ["address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol",
        "innerWindowID", "line", "column"],
    "frameTable",
);
const functions = table(
    shared.funcTable,
    ["name", "isJS", "relevantForJS", "resource", "source", "lineNumber", "columnNumber"],
    "funcTable",
);
const resources = table(shared.resourceTable, ["lib", "name", "host", "type"], "resourceTable");
table(shared.nativeSymbols, ["libIndex", "address", "name", "functionSize"], "nativeSymbols");
indexes(sources.filename, texts.length, "sources.filename");
indexes(stacks.frame, frames.length, "stackTable.frame");
stacks.prefix.forEach((it, place) => indexes([it], place, "stackTable.prefix", null));
indexes(frames.func, functions.length, "frameTable.func");
indexes(frames.category, meta.categories.length, "frameTable.category");
frames.subcategory.forEach((it, place) => {
    const { subcategories } = meta.categories[frames.category[place]];
    indexes([it], subcategories.length, "frameTable.subcategory");
});
indexes(functions.name, texts.length, "funcTable.name");
indexes(functions.resource, resources.length, "funcTable.resource", -1);
indexes(functions.source, sources.length, "funcTable.source", null);
indexes(resources.lib, libs.length, "resourceTable.lib");
indexes(resources.name, texts.length, "resourceTable.name");
check(new Set(threads.map((it) => it.tid)).size === threads.length, "two threads of one id");

/** The cause of each stack: that of its innermost frame. */
function causeOf(stack) {
    const frame = stacks.frame[stack];
    const { name, subcategories } = meta.categories[frames.category[frame]];
    return name === "On CPU" ? "running" : subcategories[frames.subcategory[frame]];
}

const sums = new Map();
const events = new Map();
for (const thread of threads) {
    const samples = table(thread.samples, ["stack", "time", "weight"], "samples");
    check(samples.weightType === "tracing-ms", "no times");
    check(samples.threadCPUDelta.length === samples.length, "threadCPUDelta: another length");
    indexes(samples.stack, stacks.length, "samples.stack");
    const inOrder = (it, place) => place === 0 || samples.time[place - 1] <= it;
    check(samples.time.every(inOrder), "times out of order");
    for (let place = 0; place < samples.length; place++) {
        const key = `${thread.name}\t${causeOf(samples.stack[place])}`;
        sums.set(key, (sums.get(key) ?? 0) + samples.weight[place]);
    }
    const allocations = thread.nativeAllocations;
    if (allocations) {
        table(allocations, ["time", "weight", "stack"], "nativeAllocations");
        indexes(allocations.stack, stacks.length, "nativeAllocations.stack");
    }
    const markers = table(
        thread.markers,
        ["data", "name", "startTime", "endTime", "phase", "category"],
        "markers",
    );
    indexes(markers.name, texts.length, "markers.name");
    indexes(markers.category, meta.categories.length, "markers.category");
    indexes(markers.phase, 2, "markers.phase");
    markers.data.forEach((data, place) => {
        const schema = meta.markerSchema.find((it) => it.name === data.type);
        check(schema, `no schema ${data.type}`);
        const keys = new Set(["type", "cause", ...schema.fields.map((it) => it.key)]);
        check(Object.keys(data).every((key) => keys.has(key)), JSON.stringify(data));
        if (data.cause) {
            indexes([data.cause.stack], stacks.length, "cause.stack");
        }
        check(markers.startTime[place] <= markers.endTime[place], "ends before it begins");
        const name = texts[markers.name[place]];
        events.set(name, (events.get(name) ?? 0) + 1);
    });
}
for (const [key, ms] of sums) {
    console.log(`sum\t${key}\t${Math.round(ms * 1e6)}`);
}
for (const [name, count] of events) {
    console.log(`markers\t${name}\t${count}`);
}
