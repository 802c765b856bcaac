"""The lock of data, what data is now, and the comparison of both."""
