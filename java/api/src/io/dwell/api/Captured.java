package io.dwell.api;

/** The context of a thread at one moment, for another thread to continue with. */
final class Captured {
    final long traceHi;
    final long traceLo;
    final long span;
    final long localRoot;
    final long state;
    final long[] labels;

    Captured(long traceHi, long traceLo, long span, long localRoot, long state, long[] labels) {
        this.traceHi = traceHi;
        this.traceLo = traceLo;
        this.span = span;
        this.localRoot = localRoot;
        this.state = state;
        this.labels = labels;
    }
}
