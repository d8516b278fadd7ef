package io.dwell.jmh;

import java.util.Collection;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.Aggregator;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ResultRole;
import org.openjdk.jmh.util.ListStatistics;

/** A number per operation, with the error that sampling leaves. */
final class SampledResult extends Result<SampledResult> {
    private static final long serialVersionUID = 1L;
    private final double error;
    /** Whether a fork that lacks this number had 0 of it. */
    private final boolean isOfFork;

    private SampledResult(String label, double[] values, double error, String unit,
            boolean isOfFork) {
        super(ResultRole.SECONDARY, label, new ListStatistics(values), unit, AggregationPolicy.AVG);
        this.error = error;
        this.isOfFork = isOfFork;
    }

    static SampledResult of(PerOperation number, boolean isOfFork) {
        double[] values = {number.value};
        return new SampledResult(number.label, values, number.error, number.unit, isOfFork);
    }

    @Override
    public double getScoreError() {
        return error;
    }

    @Override
    public double[] getScoreConfidence() {
        return new double[] {getScore() - error, getScore() + error};
    }

    @Override
    protected Aggregator<SampledResult> getThreadAggregator() {
        return this::mean;
    }

    @Override
    protected Aggregator<SampledResult> getIterationAggregator() {
        return this::mean;
    }

    @Override
    protected SampledResult getZeroResult() {
        return isOfFork ? new SampledResult(label, new double[] {0}, 0, getScoreUnit(), true) : null;
    }

    /** The mean of forks, whose errors are independent. */
    private SampledResult mean(Collection<SampledResult> results) {
        double[] values = results.stream().mapToDouble(Result::getScore).toArray();
        double variances = results.stream().mapToDouble(it -> it.error * it.error).sum();
        double error = Math.sqrt(variances) / Math.max(1, values.length);
        return new SampledResult(label, values, error, getScoreUnit(), isOfFork);
    }
}
