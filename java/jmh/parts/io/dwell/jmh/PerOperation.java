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
    final double value;
    /** Half of the interval of 99.9 % of the value, by sampling alone. */
    final double error;
    final String unit;

    private PerOperation(String label, double sum, double variance, String unit, long operations) {
        this.label = label;
        this.value = sum / operations;
        this.error = WIDTH * Math.sqrt(variance) / operations;
        this.unit = unit;
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
