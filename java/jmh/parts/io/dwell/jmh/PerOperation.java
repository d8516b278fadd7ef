package io.dwell.jmh;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The sums of a recording (`totals` of `dwell explain --json`), divided by operations. */
final class PerOperation {
    /** Part of the names of JMH's threads that run the benchmark. */
    private static final String WORKERS = "-jmh-worker-";
    /** Quantile of the normal distribution for JMH's intervals of 99.9 %. */
    private static final double WIDTH = 3.2905;

    final String label;
    /** The value of each fork. */
    final double[] values;
    /** Half of the interval of 99.9 % of the mean of the values, by sampling alone. */
    final double error;
    final String unit;

    private PerOperation(String label, double[] values, double error, String unit) {
        this.label = label;
        this.values = values;
        this.error = error;
        this.unit = unit;
    }

    private PerOperation(String label, double sum, double variance, String unit, long operations) {
        this(label, new double[] {sum / operations}, WIDTH * Math.sqrt(variance) / operations,
                unit);
    }

    /** The numbers of several forks together. A fork without a number had 0 of it. */
    static List<PerOperation> ofForks(List<List<PerOperation>> forks) {
        Map<String, PerOperation> all = new TreeMap<>();
        for (int fork = 0; fork < forks.size(); fork++) {
            for (PerOperation it : forks.get(fork)) {
                PerOperation sum = all.computeIfAbsent(it.label, label ->
                        new PerOperation(label, new double[forks.size()], 0, it.unit));
                sum.values[fork] = it.values[0];
                all.put(it.label, new PerOperation(it.label, sum.values,
                        Math.hypot(sum.error, it.error / forks.size()), it.unit));
            }
        }
        return new ArrayList<>(all.values());
    }

    /** The values of a recording of so many operations, from the JSON of `dwell explain`. */
    static List<PerOperation> of(String json, long operations) {
        Object totals = Json.get(Json.parse(json), "totals");
        if (totals == null) {
            throw new IllegalArgumentException("it has no totals: this dwell is too old");
        }
        List<PerOperation> values = new ArrayList<>();
        for (Object row : Json.rows(Json.get(totals, "cpu"))) {
            double ns = Json.number(Json.get(row, "ns"));
            String label = "dwell.cpu." + Json.get(row, "kind");
            values.add(new PerOperation(label, ns, variance(row, "Ns"), "ns/op", operations));
        }
        Object allocated = Json.get(totals, "allocated");
        if (allocated != null) {
            double bytes = Json.number(Json.get(allocated, "bytes"));
            values.add(new PerOperation("dwell.alloc", bytes, variance(allocated, "Bytes"), "B/op",
                    operations));
        }
        values.addAll(waits(Json.rows(Json.get(totals, "wall")), operations));
        return values;
    }

    /**
     * The waits of the benchmark's threads, by cause. With an executor that gives its threads other
     * names, those of all threads.
     */
    private static List<PerOperation> waits(List<?> rows, long operations) {
        boolean hasWorkers = rows.stream().anyMatch(PerOperation::isOfWorkers);
        Map<String, double[]> sums = new TreeMap<>();
        for (Object row : rows) {
            String cause = String.valueOf(Json.get(row, "cause"));
            boolean isWait = !cause.equals("running") && !cause.equals("idle-pool");
            if (isWait && (!hasWorkers || isOfWorkers(row))) {
                double[] sum = sums.computeIfAbsent(cause, it -> new double[2]);
                sum[0] += Json.number(Json.get(row, "ns"));
                sum[1] += variance(row, "Ns");
            }
        }
        List<PerOperation> values = new ArrayList<>();
        sums.forEach((cause, sum) -> {
            if (sum[0] > 0) {
                values.add(new PerOperation("dwell.wait." + cause, sum[0], sum[1], "ns/op",
                        operations));
            }
        });
        return values;
    }

    private static boolean isOfWorkers(Object row) {
        return String.valueOf(Json.get(row, "threads")).contains(WORKERS);
    }

    private static double variance(Object row, String unit) {
        return Math.pow(Json.number(Json.get(row, "standardError" + unit)), 2);
    }
}
