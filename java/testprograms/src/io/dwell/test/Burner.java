package io.dwell.test;

/** The interface of generated classes, through which programs call them. */
public interface Burner {
    /** Burns until the budget is spent. */
    long burn(CpuBudget budget, long x);
}
