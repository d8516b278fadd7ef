package io.dwell.test;

/** A kind of work: runs until the budget is spent and returns a result to keep. */
public interface Kind {
    /** Works until the budget is spent. */
    long work(CpuBudget budget);
}
