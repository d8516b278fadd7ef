"""The common parts of the benchmarks: JDKs, tools, processes, statistics, tables. It measures nothing."""
