package io.dwell.jmh;

import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.Aggregator;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ResultRole;
import org.openjdk.jmh.util.ListStatistics;

/**
 * A number per operation, with the error that sampling leaves. JMH adds up the results of forks, but
 * not the zeros of forks that lack one. So each result has all forks up to its own, and the last one
 * counts.
 */
final class SampledResult extends Result<SampledResult> {
    private static final long serialVersionUID = 1L;
    private final double error;

    SampledResult(PerOperation number) {
        super(ResultRole.SECONDARY, number.label, new ListStatistics(number.values), number.unit,
                AggregationPolicy.AVG);
        error = number.error;
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
        return SampledResult::last;
    }

    @Override
    protected Aggregator<SampledResult> getIterationAggregator() {
        return SampledResult::last;
    }

    private static SampledResult last(Collection<SampledResult> results) {
        return Collections.max(results, Comparator.comparingLong(Result::getSampleCount));
    }
}
