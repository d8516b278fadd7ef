package io.dwell.test;

/** What generated classes implement, so that programs can call them. */
public interface Burner {
    /** Burns until the budget is spent. */
    long burn(CpuBudget budget, long x);
}
