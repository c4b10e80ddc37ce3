"""The values that columns take, in Arrow, without a JVM."""
