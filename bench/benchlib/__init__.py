"""What the benchmarks share: JDKs, tools, processes, statistics, tables. It measures nothing."""
