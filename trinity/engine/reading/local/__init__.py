"""The executor of reads that makes Arrow data in this process, without a JVM."""
