"""What can be said of expressions without Spark: functions, types, names, what may fail."""
