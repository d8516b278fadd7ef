package io.dwell.test;

import java.util.Map;
import java.util.TreeMap;

/** CPU time by name, summed over threads. */
final class TruthTable {
    private final Map<String, Long> cpuNanosByName = new TreeMap<>();

    /** Adds what the current thread consumes while the work runs. */
    long measure(String name, CpuBudget budget, Kind work) {
        long before = CpuClock.threadNanos();
        Burn.sink = work.work(budget);
        long nanos = CpuClock.threadNanos() - before;
        add(name, nanos);
        return nanos;
    }

    synchronized void add(String name, long nanos) {
        cpuNanosByName.merge(name, nanos, Long::sum);
    }

    /** Adds all of another table, which no other thread may change meanwhile. */
    synchronized void addAll(TruthTable other) {
        other.cpuNanosByName.forEach(this::add);
    }

    synchronized long sum() {
        long sum = 0;
        for (long nanos : cpuNanosByName.values()) {
            sum += nanos;
        }
        return sum;
    }

    synchronized void print(Harness harness) {
        cpuNanosByName.forEach(harness::truth);
    }
}
