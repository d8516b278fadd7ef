package io.dwell.test;

import io.dwell.api.Dwell;
import io.dwell.api.Label;
import io.dwell.api.Scope;
import io.dwell.api.Trouble;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Work in scopes: every method {@code burn...} is only called where a certain context counts, so its
 * name on a stack tells which context the sample has to carry.
 */
public final class Requests {
    private static final long TRACE_HI = 0x0af7651916cd43ddL;
    private static final long TRACE_LO = 0x8448eb211c80319cL;
    private static final String TRACE = "0af7651916cd43dd8448eb211c80319c";
    private static final Label TENANT = Dwell.label("tenant");
    private static final Label SHARD = Dwell.label("shard");

    private final Harness harness;
    private long value = 1;

    private Requests(String[] args) {
        harness = new Harness("Requests", 3, args, "before_ms");
    }

    public static void main(String[] args) throws Exception {
        Requests program = new Requests(args);
        Burn.warmUp();
        ExecutorService pool = Executors.newFixedThreadPool(1, task -> new Thread(task, "pool"));
        try (Scope early = Dwell.scope(TRACE, "00000000000000ee", "GET /early")) {
            program.harness.ready();
            Thread first = new Thread(program::live, "requests-1");
            Thread second = new Thread(new Requests(args, program.harness)::live, "requests-2");
            first.start();
            second.start();
            while (program.harness.timeLeft()) {
                // This scope is older than the agent, if that is attached.
                program.burnInEarlyScope();
                try (Scope scope = Dwell.scope(TRACE, "00000000000000ef", "GET /later")) {
                    program.burnInLaterScope();
                }
                program.handOver(pool);
            }
            first.join();
            second.join();
        }
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.MINUTES);
        for (Trouble trouble : Trouble.values()) {
            program.harness.info(trouble.name(), trouble.times());
        }
        program.harness.info("active", Dwell.isActive());
        program.harness.finish();
    }

    private Requests(String[] args, Harness harness) {
        this.harness = harness;
    }

    private void live() {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(
                harness.number("before_ms", 0, 0, 10_000));
        while (System.nanoTime() < end) {
            burnNone();
        }
        while (harness.timeLeft()) {
            burnNone();
            plain();
            nested();
            labels();
            endpoints();
            misuse();
        }
    }

    private void plain() {
        try (Scope scope = Dwell.scope(TRACE, "00000000000000a1", "GET /a")) {
            burnPlainA();
        }
        burnNone();
        try (Scope scope = Dwell.scope(TRACE_HI, TRACE_LO, 0xb1, 0xb0, "GET /b")) {
            burnPlainB();
        }
    }

    private void nested() {
        try (Scope outer = Dwell.scope(TRACE_HI, TRACE_LO, 0xc1, 0xc0, "GET /outer")) {
            burnOuter();
            try (Scope inner = Dwell.scope(TRACE, "00000000000000c2", null)) {
                burnInner();
                try (Scope other = Dwell.scope(null, "c3", "GET /innermost")) {
                    burnInnermost();
                }
                burnInner();
            }
            burnOuter();
        }
    }

    private void labels() {
        try (Scope scope = Dwell.scope(TRACE_HI, TRACE_LO, 0xd1, 0xd1, null)) {
            Dwell.setLabel(TENANT, "acme, inc");
            burnTenant();
            try (Scope inner = Dwell.scope(TRACE_HI, TRACE_LO, 0xd2, 0xd1, null)) {
                burnTenantInherited();
                Dwell.setLabel(SHARD, "7");
                Dwell.setLabel(TENANT, "other");
                burnBothLabels();
                Dwell.setLabel(TENANT, null);
                burnShard();
            }
            burnTenant();
        }
    }

    private void endpoints() {
        try (Scope scope = Dwell.scope(TRACE_HI, TRACE_LO, 0xe1, 0xe1, null)) {
            burnBeforeEndpoint();
            Dwell.endpoint("GET /late/{id}");
            burnAfterEndpoint();
        }
    }

    private void misuse() {
        Scope outer = Dwell.scope(TRACE_HI, TRACE_LO, 0xf1, 0xf1, "GET /misuse");
        Scope twice = Dwell.scope(TRACE_HI, TRACE_LO, 0xf2, 0xf1, null);
        twice.close();
        twice.close();
        burnMisused();
        Thread other = new Thread(outer::close, "closer");
        other.start();
        try {
            other.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        burnMisused();
        Scope forgotten = Dwell.scope(TRACE_HI, TRACE_LO, 0xf3, 0xf1, null);
        outer.close();
        burnNone();
        forgotten.close();
        burnNone();
    }

    private void handOver(ExecutorService pool) throws InterruptedException, ExecutionException {
        ExecutorService wrapped = Dwell.wrap(pool);
        try (Scope scope = Dwell.scope(TRACE_HI, TRACE_LO, 0x91, 0x90, "GET /wrapped")) {
            Dwell.setLabel(SHARD, "9");
            pool.submit(Dwell.wrap((Runnable) this::burnWrapped)).get();
            Callable<Long> task = this::burnWrapped;
            pool.submit(Dwell.wrap(task)).get();
            wrapped.submit((Runnable) this::burnWrapped).get();
            pool.submit((Runnable) this::burnNone).get();
        }
    }

    private long burn() {
        for (int i = 0; i < 30; i++) {
            value = Burn.unit(value);
        }
        Burn.sink = value;
        return value;
    }

    private void burnNone() {
        burn();
    }

    private void burnInEarlyScope() {
        burn();
    }

    private void burnInLaterScope() {
        burn();
    }

    private void burnPlainA() {
        burn();
    }

    private void burnPlainB() {
        burn();
    }

    private void burnOuter() {
        burn();
    }

    private void burnInner() {
        burn();
    }

    private void burnInnermost() {
        burn();
    }

    private void burnTenant() {
        burn();
    }

    private void burnTenantInherited() {
        burn();
    }

    private void burnBothLabels() {
        burn();
    }

    private void burnShard() {
        burn();
    }

    private void burnBeforeEndpoint() {
        burn();
    }

    private void burnAfterEndpoint() {
        burn();
    }

    private void burnMisused() {
        burn();
    }

    private long burnWrapped() {
        return burn();
    }
}
