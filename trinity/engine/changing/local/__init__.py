"""The executor of row changes that makes Arrow data in this process, without a JVM."""
